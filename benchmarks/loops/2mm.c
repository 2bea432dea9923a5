/* Two products and a sum: E = alpha A B C + beta E. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int m, int k, int l, REAL alpha, REAL beta, REAL T[n][m], REAL A[n][k], REAL B[k][m], REAL C[m][l],
            REAL E[n][l])
{
#pragma scop
  for (int r = 0; r < n; r++)
    for (int c = 0; c < m; c++) {
      T[r][c] = 0;
      for (int q = 0; q < k; q++)
        T[r][c] += alpha * A[r][q] * B[q][c];
    }
  for (int r = 0; r < n; r++)
    for (int c = 0; c < l; c++) {
      E[r][c] *= beta;
      for (int q = 0; q < m; q++)
        E[r][c] += T[r][q] * C[q][c];
    }
#pragma endscop
}
