/* Two staggered fields that push each other, with a boundary that depends on the time. */
void kernel(int steps, int n, int m, long e[n][m], long h[n][m], long pulse[steps])
{
#pragma scop
  for (int t = 0; t < steps; t++) {
    for (int j = 0; j < m; j++)
      e[0][j] = pulse[t];
    for (int i = 1; i < n; i++)
      for (int j = 0; j < m; j++)
        e[i][j] -= h[i][j] - h[i - 1][j];
    for (int i = 0; i < n - 1; i++)
      for (int j = 0; j < m - 1; j++)
        h[i][j] -= e[i][j + 1] - e[i][j] + e[i + 1][j];
  }
#pragma endscop
}
