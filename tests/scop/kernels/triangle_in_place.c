/* A triangular matrix times another one, in place: rows below are still needed when a row is written. */
void kernel(int n, int m, long L[n][n], long B[n][m])
{
#pragma scop
  for (int r = 0; r < n; r++)
    for (int c = 0; c < m; c++) {
      for (int q = r + 1; q < n; q++)
        B[r][c] += L[q][r] * B[q][c];
      B[r][c] = 5 * B[r][c];
    }
#pragma endscop
}
