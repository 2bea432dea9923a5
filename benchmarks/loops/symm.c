/* A symmetric matrix, of which the lower half is stored, times a matrix: C = alpha A B + beta C. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int m, REAL alpha, REAL beta, REAL C[n][m], REAL A[n][n], REAL B[n][m])
{
#pragma scop
  REAL dot;
  for (int r = 0; r < n; r++)
    for (int c = 0; c < m; c++) {
      dot = 0;
      for (int q = 0; q < r; q++) {
        C[q][c] += alpha * B[r][c] * A[r][q];
        dot += B[q][c] * A[r][q];
      }
      C[r][c] = beta * C[r][c] + alpha * B[r][c] * A[r][r] + alpha * dot;
    }
#pragma endscop
}
