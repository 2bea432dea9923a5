/* A product of matrices: C = alpha A B + beta C. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int m, int k, REAL alpha, REAL beta, REAL C[n][m], REAL A[n][k], REAL B[k][m])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    for (int c = 0; c < m; c++)
      C[r][c] *= beta;
    for (int q = 0; q < k; q++)
      for (int c = 0; c < m; c++)
        C[r][c] += alpha * A[r][q] * B[q][c];
  }
#pragma endscop
}
