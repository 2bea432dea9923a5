/* Loops without dependences between iterations: what is left is to read and store well. */
#include <stdint.h>

#ifndef REAL
#define REAL double
#endif

void add(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n; i++)
    c[i] = a[i] + b[i];
}

void gather(int n, REAL a[n], REAL b[n], int at[n])
{
  for (int i = 0; i < n; i++)
    a[i] += 2 * b[at[i]];
}

void scatter_add(int n, REAL a[n], REAL b[n], int at[n])
{
  for (int i = 0; i < n; i++)
    a[at[i]] += b[i];
}

void reversed(int n, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n; i++)
    a[i] = b[n - 1 - i] * 3;
}

void every_third(int n, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n / 3; i++)
    a[3 * i] = a[3 * i + 1] + b[i];
}

void positive_part(int n, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n; i++)
    if (b[i] > 0)
      a[i] = b[i];
}

void transposed_sum(int m, REAL A[m][m], REAL B[m][m])
{
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++)
      A[i][j] += B[j][i];
}

void diagonal_scale(int m, REAL A[m][m], REAL b[m])
{
  for (int i = 0; i < m; i++)
    A[i][i] = A[i][i] * b[i] + 1;
}

void long_expression(int n, REAL a[n], REAL b[n], REAL c[n], REAL d[n])
{
  for (int i = 0; i < n; i++)
    d[i] = (a[i] + b[i]) * (a[i] - c[i]) + b[i] * c[i] * (d[i] + a[i]) - d[i] * b[i];
}

void scaled_up(int m, REAL A[m][m], REAL B[m / 2 + 2][m / 2 + 2])
{
  for (int y = 0; y < m; y++)
    for (int x = 0; x < m; x++) {
      int top = y / 2, left = x / 2;
      REAL down = (REAL)0.5 * (y % 2), across = (REAL)0.5 * (x % 2);
      REAL upper = (1 - across) * B[top][left] + across * B[top][left + 1];
      REAL lower = (1 - across) * B[top + 1][left] + across * B[top + 1][left + 1];
      A[y][x] = (1 - down) * upper + down * lower;
    }
}

void blurred(int m, uint8_t X[m][m], uint8_t Y[m][m])
{
  for (int y = 1; y < m - 1; y++)
    for (int x = 1; x < m - 1; x++) {
      int sum = 0;
      for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
          sum += X[y + dy][x + dx];
      Y[y][x] = sum / 9;
    }
}
