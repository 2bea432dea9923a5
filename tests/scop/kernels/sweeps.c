/* Sweeps that use new values as soon as they are there: a wavefront. */
void kernel(int steps, int n, int m, long u[n][m])
{
#pragma scop
  for (int t = 0; t < steps; t++)
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < m - 1; j++)
        u[i][j] = (u[i - 1][j] + u[i][j - 1] + u[i][j] + u[i][j + 1] + u[i + 1][j]) % 1000;
#pragma endscop
}
