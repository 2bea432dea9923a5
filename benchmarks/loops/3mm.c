/* Three products: G = (A B) (C D). */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int m, int k, int l, int p, REAL E[n][m], REAL A[n][k], REAL B[k][m], REAL F[m][l], REAL C[m][p],
            REAL D[p][l], REAL G[n][l])
{
#pragma scop
  for (int r = 0; r < n; r++)
    for (int c = 0; c < m; c++) {
      E[r][c] = 0;
      for (int q = 0; q < k; q++)
        E[r][c] += A[r][q] * B[q][c];
    }
  for (int r = 0; r < m; r++)
    for (int c = 0; c < l; c++) {
      F[r][c] = 0;
      for (int q = 0; q < p; q++)
        F[r][c] += C[r][q] * D[q][c];
    }
  for (int r = 0; r < n; r++)
    for (int c = 0; c < l; c++) {
      G[r][c] = 0;
      for (int q = 0; q < m; q++)
        G[r][c] += E[r][q] * F[q][c];
    }
#pragma endscop
}
