/* Statements that run in another order, in loops of their own, or with loops exchanged. */
#ifndef REAL
#define REAL double
#endif

void reorder(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 1; i < n - 1; i++) {
    a[i] = b[i - 1] + c[i];
    b[i] = b[i + 1] - c[i] * 2;
  }
}

void needs_copy(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n - 1; i++) {
    a[i] *= c[i];
    b[i] += a[i + 1] * c[i];
  }
}

void crossed(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 1; i < n - 1; i++) {
    a[i] = b[i - 1] + c[i];
    b[i] = a[i + 1] * c[i];
  }
}

void recurrence_apart(int n, REAL a[n], REAL b[n], REAL c[n], REAL d[n])
{
  for (int i = 1; i < n; i++) {
    a[i] += c[i] * d[i];
    b[i] = b[i - 1] * 0.5 + a[i] + d[i];
  }
}

void recurrence_between(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 1; i < n; i++) {
    a[i] += b[i] * c[i];
    c[i] = c[i - 1] * c[i - 1] * 0.25;
    a[i] -= b[i] * c[i];
  }
}

void exchange(int m, REAL A[m][m], REAL B[m][m])
{
  for (int i = 0; i < m; i++)
    for (int j = 1; j < m; j++)
      A[j][i] = A[j - 1][i] * 0.5 + B[j][i];
}

void exchange_triangle(int m, REAL A[m][m], REAL B[m][m])
{
  for (int j = 0; j < m; j++)
    for (int i = j; i < m; i++)
      A[i][j] = 2 * B[i][j] + A[i][j];
}

void imperfect(int m, REAL a[m], REAL b[m], REAL A[m][m], REAL B[m][m])
{
  for (int i = 0; i < m; i++) {
    a[i] += b[i] * 3;
    for (int j = 1; j < m; j++)
      A[j][i] = A[j - 1][i] * 0.5 + B[j][i] * a[i];
  }
}

void product_by_columns(int m, REAL A[m][m], REAL B[m][m], REAL C[m][m])
{
  for (int j = 0; j < m; j++)
    for (int i = 0; i < m; i++) {
      C[i][j] = 0;
      for (int k = 0; k < m; k++)
        C[i][j] += A[i][k] * B[k][j];
    }
}
