/* Centred columns of a table, and the symmetric matrix of their covariances. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int m, REAL X[n][m], REAL V[m][m], REAL mean[m])
{
#pragma scop
  REAL count = n;
  for (int c = 0; c < m; c++) {
    mean[c] = 0;
    for (int r = 0; r < n; r++)
      mean[c] += X[r][c];
    mean[c] /= count;
  }
  for (int r = 0; r < n; r++)
    for (int c = 0; c < m; c++)
      X[r][c] -= mean[c];
  for (int a = 0; a < m; a++)
    for (int b = a; b < m; b++) {
      V[a][b] = 0;
      for (int r = 0; r < n; r++)
        V[a][b] += X[r][a] * X[r][b];
      V[a][b] /= count - 1;
      V[b][a] = V[a][b];
    }
#pragma endscop
}
