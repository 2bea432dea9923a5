/* The lower half of a symmetric update of rank k: C = alpha A A' + beta C. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int k, REAL alpha, REAL beta, REAL C[n][n], REAL A[n][k])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    for (int c = 0; c <= r; c++)
      C[r][c] *= beta;
    for (int q = 0; q < k; q++)
      for (int c = 0; c <= r; c++)
        C[r][c] += alpha * A[r][q] * A[c][q];
  }
#pragma endscop
}
