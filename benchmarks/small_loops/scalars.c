/* Scalars that every iteration sets anew, or that the last one leaves. */
#ifndef REAL
#define REAL double
#endif

void temporary(int n, REAL a[n], REAL b[n], REAL c[n])
{
  REAL s;
  for (int i = 0; i < n; i++) {
    s = b[i] + c[i] * 2;
    a[i] = s * s;
  }
}

void swap(int n, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n; i++) {
    REAL t = a[i];
    a[i] = b[i];
    b[i] = t;
  }
}

void chained(int n, REAL a[n], REAL b[n], REAL c[n], REAL d[n])
{
  REAL s, t;
  for (int i = 0; i < n; i++) {
    s = b[i] * c[i];
    t = s + a[i];
    d[i] = t * s;
    a[i] = t - s;
  }
}

void previous_value(int n, REAL a[n], REAL b[n], REAL c[n])
{
  REAL t = 0;
  for (int i = 0; i < n; i++) {
    REAL s = b[i] * c[i];
    a[i] = s + t;
    t = s;
  }
}

void two_before(int n, REAL a[n], REAL b[n])
{
  REAL x = b[0], y = b[1];
  for (int i = 0; i < n; i++) {
    a[i] = (b[i] + x + y) * 0.25;
    x = y;
    y = b[i];
  }
}

void given_sometimes(int n, REAL a[n], REAL b[n], REAL c[n])
{
  REAL s = 0;
  for (int i = 0; i < n; i++) {
    if (b[i] > 0)
      s = b[i] * c[i];
    a[i] = s + c[i];
  }
}

void last_value(int n, REAL a[n], REAL b[n], REAL out[1])
{
  REAL s = 0;
  for (int i = 0; i < n; i++) {
    s = a[i] + b[i];
    a[i] = s * 2;
  }
  out[0] = s;
}

void small_array(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n / 4; i++) {
    REAL t[4];
    for (int j = 0; j < 4; j++)
      t[j] = b[4 * i + j] + c[4 * i + 3 - j];
    for (int j = 0; j < 4; j++)
      a[4 * i + j] = t[3 - j] * 0.5;
  }
}

void row_buffer(int m, REAL t[m], REAL A[m][m], REAL B[m][m])
{
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < m; j++)
      t[j] = A[i][j] * 2;
    for (int j = 0; j < m; j++)
      B[i][j] += t[m - 1 - j];
  }
}

void clipped(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n; i++) {
    REAL s = b[i];
    if (s < 0)
      s = -s;
    if (s > c[i])
      s = c[i];
    a[i] = s;
  }
}
