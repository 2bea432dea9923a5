/* The Cholesky factor of a positive definite matrix, in its lower triangle, row by row. */
#ifndef REAL
#define REAL double
#endif
#include <math.h>

void kernel(int n, REAL A[n][n])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    for (int c = 0; c < r; c++) {
      for (int q = 0; q < c; q++)
        A[r][c] -= A[r][q] * A[c][q];
      A[r][c] /= A[c][c];
    }
    for (int q = 0; q < r; q++)
      A[r][r] -= A[r][q] * A[r][q];
    A[r][r] = sqrt(A[r][r]);
  }
#pragma endscop
}
