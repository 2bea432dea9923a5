/* A symmetric matrix of which only one half is stored: a dot product in a scalar and a scattered sum. */
void kernel(int n, int m, long S[n][n], long B[n][m], long C[n][m])
{
#pragma scop
  for (int r = 0; r < n; r++)
    for (int c = 0; c < m; c++) {
      long dot = 0;
      for (int q = 0; q < r; q++) {
        C[q][c] += B[r][c] * S[r][q];
        dot += B[q][c] * S[r][q];
      }
      C[r][c] = C[r][c] + B[r][c] * S[r][r] + dot;
    }
#pragma endscop
}
