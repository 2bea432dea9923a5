/* Values of a whole array. */
#ifndef REAL
#define REAL double
#endif

#include <math.h>

void sum(int n, REAL a[n], REAL out[1])
{
  REAL s = 0;
  for (int i = 0; i < n; i++)
    s += a[i];
  out[0] = s;
}

void dot(int n, REAL a[n], REAL b[n], REAL out[1])
{
  REAL s = 0;
  for (int i = 0; i < n; i++)
    s += a[i] * b[i];
  out[0] = s;
}

void strided_sum(int n, REAL a[n], REAL out[1])
{
  REAL s = 0;
  for (int i = 0; i < n / 5; i++)
    s += a[5 * i + 2];
  out[0] = s;
}

void product(int n, REAL a[n], REAL out[1])
{
  REAL s = 1;
  for (int i = 0; i < n; i++)
    s *= 1 + a[i] / n;
  out[0] = s;
}

void largest(int n, REAL a[n], REAL out[1])
{
  REAL x = a[0];
  for (int i = 1; i < n; i++)
    if (a[i] > x)
      x = a[i];
  out[0] = x;
}

void largest_size(int n, REAL a[n], REAL out[1])
{
  REAL x = 0;
  for (int i = 0; i < n; i++) {
    REAL y = a[i] < 0 ? -a[i] : a[i];
    x = y > x ? y : x;
  }
  out[0] = x;
}

void both_ends(int n, REAL a[n], REAL out[2])
{
  REAL low = a[0], high = a[0];
  for (int i = 1; i < n; i++) {
    low = a[i] < low ? a[i] : low;
    high = a[i] > high ? a[i] : high;
  }
  out[0] = low;
  out[1] = high;
}

void place_of_largest(int n, REAL a[n], REAL out[2])
{
  REAL x = a[0];
  int at = 0;
  for (int i = 1; i < n; i++)
    if (a[i] > x) {
      x = a[i];
      at = i;
    }
  out[0] = x;
  out[1] = at;
}

void place_of_smallest_size(int n, REAL a[n], REAL out[2])
{
  REAL x = fabs(a[0]);
  int at = 0, k = 0;
  for (int i = 1; i < n / 2; i++) {
    k += 2;
    if (fabs(a[k]) < x) {
      x = fabs(a[k]);
      at = i;
    }
  }
  out[0] = x;
  out[1] = at;
}

void place_in_matrix(int m, REAL A[m][m], REAL out[3])
{
  REAL x = A[0][0];
  int row = 0, column = 0;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++)
      if (A[i][j] > x) {
        x = A[i][j];
        row = i;
        column = j;
      }
  out[0] = x;
  out[1] = row;
  out[2] = column;
}

void sum_of_positive(int n, REAL a[n], REAL out[1])
{
  REAL s = 0;
  for (int i = 0; i < n; i++)
    if (a[i] > 0)
      s += a[i];
  out[0] = s;
}

void how_many(int n, REAL a[n], int out[1])
{
  int k = 0;
  for (int i = 0; i < n; i++)
    if (a[i] > 0.5)
      k++;
  out[0] = k;
}

void two_sums(int n, REAL a[n], REAL b[n], REAL out[2])
{
  REAL s = 0, t = 0;
  for (int i = 0; i < n; i++) {
    a[i] = a[i] * 0.5 + b[i];
    s += a[i];
    t += a[i] * a[i];
  }
  out[0] = s;
  out[1] = t;
}

void by_hand_unrolled(int n, REAL a[n], REAL b[n], REAL out[1])
{
  REAL s = 0;
  for (int i = 0; i < n - 4; i += 5)
    s += a[i] * b[i] + a[i + 1] * b[i + 1] + a[i + 2] * b[i + 2] + a[i + 3] * b[i + 3] + a[i + 4] * b[i + 4];
  out[0] = s;
}

void column_sums(int m, REAL a[m], REAL A[m][m])
{
  for (int j = 0; j < m; j++) {
    a[j] = 0;
    for (int i = 0; i < m; i++)
      a[j] += A[i][j];
  }
}

void any_negative(int n, REAL a[n], int out[1])
{
  int found = 0;
  for (int i = 0; i < n; i++)
    found = found || a[i] < 0;
  out[0] = found;
}

void histogram(int n, int counts[64], int bin[n])
{
  for (int i = 0; i < n; i++)
    counts[bin[i] & 63]++;
}
