/* L and U with A = L U, in place, row by row. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, REAL A[n][n])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    for (int c = 0; c < r; c++) {
      for (int q = 0; q < c; q++)
        A[r][c] -= A[r][q] * A[q][c];
      A[r][c] /= A[c][c];
    }
    for (int c = r; c < n; c++)
      for (int q = 0; q < r; q++)
        A[r][c] -= A[r][q] * A[q][c];
  }
#pragma endscop
}
