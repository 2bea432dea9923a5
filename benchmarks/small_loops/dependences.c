/* Dependences that a test of subscripts has to see through. */
#ifndef REAL
#define REAL double
#endif

void odd_from_even(int n, REAL a[n], REAL b[n])
{
  for (int i = 1; i < n; i += 2)
    a[i] = a[i - 1] + b[i];
}

void other_half(int n, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n / 2; i++)
    a[i] = a[i + n / 2] - b[i];
}

void reads_ahead(int n, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n - 1; i++)
    a[i] = a[i + 1] * b[i];
}

void downwards(int n, REAL a[n], REAL b[n])
{
  for (int i = n - 2; i >= 0; i--)
    a[i + 1] = a[i] + b[i];
}

void below_diagonal(int m, REAL A[m][m], REAL B[m][m])
{
  for (int i = 1; i < m; i++)
    for (int j = 0; j < i; j++)
      A[i][j] = A[j][i] + B[i][j];
}

void along_diagonals(int m, REAL A[m][m], REAL B[m][m])
{
  for (int i = 1; i < m; i++)
    for (int j = 1; j < m; j++)
      A[i][j] = A[i - 1][j - 1] * 0.5 + B[i][j];
}

void from_row_above(int m, REAL A[m][m], REAL B[m][m])
{
  for (int j = 0; j < m; j++)
    for (int i = 1; i < m; i++)
      A[i][j] = A[i - 1][j] * 0.5 + B[i][j];
}

void substitution(int m, REAL a[m], REAL A[m][m])
{
  for (int j = 0; j < m; j++)
    for (int i = j + 1; i < m; i++)
      a[i] -= A[j][i] * a[j];
}

void distance_four(int n, REAL a[n], REAL b[n])
{
  for (int i = 4; i < n; i++)
    a[i] = a[i - 4] * 0.5 + b[i];
}

void wavefront(int m, REAL A[m][m])
{
  for (int i = 1; i < m; i++)
    for (int j = 1; j < m; j++)
      A[i][j] = 0.5 * (A[i - 1][j] + A[i][j - 1]);
}
