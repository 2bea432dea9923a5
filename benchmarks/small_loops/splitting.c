/* Statements split in two, and iterations split in ranges. */
#ifndef REAL
#define REAL double
#endif

void node_split(int n, REAL a[n], REAL b[n], REAL c[n], REAL d[n])
{
  for (int i = 0; i < n - 1; i++) {
    a[i] = b[i] * c[i] * d[i];
    b[i] = a[i] * a[i + 1] * d[i];
  }
}

void node_split_sum(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n - 1; i++) {
    a[i] = b[i] + c[i] * c[i] + b[i] * b[i] + c[i];
    b[i] = a[i] + a[i + 1];
  }
}

void overwritten(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n - 1; i++) {
    a[i] = b[i] + c[i];
    a[i + 1] = b[i] * c[i];
  }
}

void middle_element(int n, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n; i++)
    a[i] = a[n / 2] + b[i];
}

void first_element(int n, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n; i++)
    a[i] = a[0] * b[i];
}

void threshold(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n; i++) {
    REAL x = a[n - 1 - i] + b[i] * c[i];
    a[i] = x - 1;
    b[i] = x;
  }
}

void by_place(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 0; i < n; i++) {
    if (i < n / 2)
      a[i] += b[i] * c[i];
    else
      a[i] = a[i - n / 2] + c[i];
  }
}

void wrap_around(int n, REAL a[n], REAL b[n])
{
  int last = n - 1;
  for (int i = 0; i < n; i++) {
    a[i] = (b[i] + b[last]) * 0.5;
    last = i;
  }
}

void wrap_around_twice(int n, REAL a[n], REAL b[n])
{
  int last = n - 1, before = n - 2;
  for (int i = 0; i < n; i++) {
    a[i] = (b[i] + b[last] + b[before]) * 0.25;
    before = last;
    last = i;
  }
}

void peeled_end(int n, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n; i++) {
    a[i] = b[i] * 2;
    if (i == n - 1)
      b[0] = a[i] + 1;
  }
}

void node_cycle(int n, REAL a[n], REAL b[n], REAL c[n])
{
  for (int i = 1; i < n - 1; i++) {
    c[i] = a[i + 1] - a[i - 1];
    a[i] = b[i] * 0.5;
  }
}

void wrapped_values(int n, REAL a[n], REAL b[n])
{
  REAL x = b[n - 1], y = b[n - 2];
  for (int i = 0; i < n; i++) {
    a[i] = (b[i] + x + y) * 0.25;
    y = x;
    x = b[i];
  }
}

void all_others(int m, REAL x[m], REAL y[m])
{
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++)
      if (i != j)
        y[i] += x[j] / (1 + (x[i] - x[j]) * (x[i] - x[j]));
}

void recursive_filter(int m, REAL A[m][m], REAL B[m][m])
{
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++)
      B[i][j] = A[i][j] + (i > 0 ? 0.25 * B[i - 1][j] : 0) + (j > 0 ? 0.5 * B[i][j - 1] : 0);
}
