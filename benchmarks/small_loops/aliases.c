/* One array under several names or shapes; functions; loops rolled up again. */
#ifndef REAL
#define REAL double
#endif

static REAL blend(REAL x, REAL y, REAL share)
{
  return x * share + y * (1 - share);
}

void shifted_view(int n, REAL a[n], REAL b[n])
{
  REAL *next = a + 1;
  for (int i = 0; i < n - 1; i++)
    a[i] = next[i] + b[i];
}

void upper_half_view(int n, REAL a[n], REAL b[n])
{
  REAL *upper = a + n / 2;
  for (int i = 0; i < n / 2; i++)
    upper[i] = a[i] * 0.5 + b[i];
}

void behind_view(int n, REAL a[n], REAL b[n])
{
  REAL *next = a + 1;
  for (int i = 0; i < n - 1; i++)
    next[i] = a[i] * 0.5 + b[i];
}

void matrix_as_row(int m, REAL A[m][m], REAL b[m * m])
{
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++)
      b[i * m + j] += A[i][j];
}

void calls(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n; i++)
    c[i] = blend(a[i], b[i], 0.25) + blend(b[i], c[i], 0.5);
}

void unrolled_by_hand(int n, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n - 4; i += 5) {
    a[i] += 2 * b[i];
    a[i + 1] += 2 * b[i + 1];
    a[i + 2] += 2 * b[i + 2];
    a[i + 3] += 2 * b[i + 3];
    a[i + 4] += 2 * b[i + 4];
  }
}

void chain_by_hand(int n, REAL a[n])
{
  for (int i = 0; i < n - 3; i += 3) {
    a[i] = a[i + 1] * a[i];
    a[i + 1] = a[i + 2] * a[i + 1];
    a[i + 2] = a[i + 3] * a[i + 2];
  }
}

void pointer_walk(int n, REAL a[n], REAL b[n])
{
  REAL *p = a;
  for (int i = 0; i < n; i++)
    *p++ = b[i] + 1;
}
