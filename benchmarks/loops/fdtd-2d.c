/* An electromagnetic field in two dimensions: leapfrog steps of three arrays. */
#ifndef REAL
#define REAL double
#endif

void kernel(int steps, int n, int m, REAL ex[n][m], REAL ey[n][m], REAL hz[n][m], REAL source[steps])
{
#pragma scop
  for (int t = 0; t < steps; t++) {
    for (int j = 0; j < m; j++)
      ey[0][j] = source[t];
    for (int i = 1; i < n; i++)
      for (int j = 0; j < m; j++)
        ey[i][j] -= (REAL)0.5 * (hz[i][j] - hz[i - 1][j]);
    for (int i = 0; i < n; i++)
      for (int j = 1; j < m; j++)
        ex[i][j] -= (REAL)0.5 * (hz[i][j] - hz[i][j - 1]);
    for (int i = 0; i < n - 1; i++)
      for (int j = 0; j < m - 1; j++)
        hz[i][j] -= (REAL)0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
  }
#pragma endscop
}
