/* The lower half of a symmetric update of rank two k: C = alpha (A B' + B A') + beta C. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int k, REAL alpha, REAL beta, REAL C[n][n], REAL A[n][k], REAL B[n][k])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    for (int c = 0; c <= r; c++)
      C[r][c] *= beta;
    for (int q = 0; q < k; q++)
      for (int c = 0; c <= r; c++)
        C[r][c] += A[c][q] * alpha * B[r][q] + B[c][q] * alpha * A[r][q];
  }
#pragma endscop
}
