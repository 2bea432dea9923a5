/* Heat in a box: two half steps of a stencil with seven points. */
#ifndef REAL
#define REAL double
#endif

void kernel(int steps, int n, REAL A[n][n][n], REAL B[n][n][n])
{
#pragma scop
  for (int t = 1; t <= steps; t++) {
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        for (int k = 1; k < n - 1; k++)
          B[i][j][k] = (REAL)0.125 * (A[i + 1][j][k] - 2 * A[i][j][k] + A[i - 1][j][k]) +
                       (REAL)0.125 * (A[i][j + 1][k] - 2 * A[i][j][k] + A[i][j - 1][k]) +
                       (REAL)0.125 * (A[i][j][k + 1] - 2 * A[i][j][k] + A[i][j][k - 1]) + A[i][j][k];
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        for (int k = 1; k < n - 1; k++)
          A[i][j][k] = (REAL)0.125 * (B[i + 1][j][k] - 2 * B[i][j][k] + B[i - 1][j][k]) +
                       (REAL)0.125 * (B[i][j + 1][k] - 2 * B[i][j][k] + B[i][j - 1][k]) +
                       (REAL)0.125 * (B[i][j][k + 1] - 2 * B[i][j][k] + B[i][j][k - 1]) + B[i][j][k];
  }
#pragma endscop
}
