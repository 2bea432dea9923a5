/* The same with an accumulator scalar, as books write it. */
void kernel(int n, double A[n][n])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    for (int c = 0; c < r; c++) {
      double w = A[r][c];
      for (int q = 0; q < c; q++)
        w -= A[r][q] * A[q][c];
      A[r][c] = w / A[c][c];
    }
    for (int c = r; c < n; c++) {
      double w = A[r][c];
      for (int q = 0; q < r; q++)
        w -= A[r][q] * A[q][c];
      A[r][c] = w;
    }
  }
#pragma endscop
}
