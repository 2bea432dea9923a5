/* Each iteration needs what one before it computed. */
#ifndef REAL
#define REAL double
#endif

void prefix_sum(int n, REAL a[n], REAL b[n])
{
  REAL s = 0;
  for (int i = 0; i < n; i++) {
    s += b[i];
    a[i] = s;
  }
}

void prefix_in_place(int n, REAL a[n])
{
  for (int i = 1; i < n; i++)
    a[i] += a[i - 1];
}

void running_largest(int n, REAL a[n], REAL b[n])
{
  REAL x = b[0];
  for (int i = 0; i < n; i++) {
    x = b[i] > x ? b[i] : x;
    a[i] = x;
  }
}

void first_order(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 1; i < n; i++)
    a[i] = a[i - 1] * c[i] * 0.1 + b[i];
}

void second_order(int n, REAL a[n], REAL b[n])
{
  for (int i = 2; i < n; i++)
    a[i] = a[i - 1] * 0.3 + a[i - 2] * 0.2 + b[i];
}

void coupled_recurrence(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 1; i < n; i++) {
    a[i] = b[i - 1] * 0.5 + c[i];
    b[i] = a[i] * 0.5 - c[i];
  }
}

void not_associative(int n, REAL a[n], REAL b[n])
{
  for (int i = 1; i < n; i++)
    a[i] = 1 / (2 + a[i - 1] * a[i - 1]) + b[i];
}

void rows_of_sums(int m, REAL A[m][m])
{
  for (int i = 0; i < m; i++)
    for (int j = 1; j < m; j++)
      A[i][j] += A[i][j - 1];
}
