/* LU row by row, as dot products: the parallel form goes column by column. */
void kernel(int n, double A[n][n])
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
