/* Branches on data. */
#ifndef REAL
#define REAL double
#endif

void guarded_update(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n; i++)
    if (a[i] > 0)
      a[i] += b[i] * c[i];
}

void nested_branches(int n, REAL a[n], REAL b[n], REAL c[n], REAL d[n])
{
  for (int i = 0; i < n; i++) {
    if (a[i] > 0) {
      if (b[i] > a[i])
        c[i] += b[i] * d[i];
      else
        c[i] = d[i] - a[i];
    } else {
      b[i] = a[i] + d[i] * d[i];
    }
  }
}

void sets_condition(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n; i++) {
    b[i] = b[i] + c[i];
    if (b[i] < 0)
      a[i] = b[i] * 2;
    c[i] += a[i];
  }
}

void two_tests(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n; i++)
    if (a[i] > 0 && b[i] < c[i])
      c[i] = a[i] - b[i];
}

void column_guard(int m, REAL A[m][m], REAL B[m][m], REAL C[m][m])
{
  for (int i = 0; i < m; i++)
    for (int j = 1; j < m; j++)
      if (B[j][i] > 0)
        A[j][i] = A[j - 1][i] + B[j][i] * C[j][i];
}

void test_outside(int n, REAL s, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n; i++) {
    a[i] += b[i];
    if (s > 0)
      a[i] *= s;
  }
}

void divides_safely(int n, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n; i++)
    a[i] = b[i] != 0 ? a[i] / b[i] : 0;
}

void either_array(int m, REAL A[m][m], REAL B[m][m], REAL C[m][m])
{
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++)
      if (A[i][j] > 0)
        B[i][j] = A[i][j] * 2;
      else
        C[i][j] = A[i][j] - 1;
}

void transposed_guard(int m, REAL A[m][m], REAL B[m][m])
{
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++)
      if (A[i][j] > 0)
        B[j][i] = A[i][j];
}
