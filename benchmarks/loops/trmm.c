/* The transpose of a triangle with ones on its diagonal times a matrix, in place: B = alpha A' B. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int m, REAL alpha, REAL A[n][n], REAL B[n][m])
{
#pragma scop
  for (int r = 0; r < n; r++)
    for (int c = 0; c < m; c++) {
      for (int q = r + 1; q < n; q++)
        B[r][c] += A[q][r] * B[q][c];
      B[r][c] = alpha * B[r][c];
    }
#pragma endscop
}
