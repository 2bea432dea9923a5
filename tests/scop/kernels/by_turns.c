/* Implicit steps by turns: a recurrence along each column, then along each row. */
void kernel(int steps, int n, double u[n][n], double p[n][n])
{
#pragma scop
  for (int t = 0; t < steps; t++) {
    for (int c = 1; c < n - 1; c++) {
      p[c][0] = 1.0;
      for (int r = 1; r < n - 1; r++)
        p[c][r] = u[r][c] / (4.0 + p[c][r - 1]);
      for (int r = n - 2; r >= 1; r--)
        u[r][c] = p[c][r] * u[r + 1][c] + 1.0;
    }
    for (int r = 1; r < n - 1; r++)
      for (int c = 1; c < n - 1; c++)
        u[r][c] = (u[r][c - 1] + u[r][c]) * 0.5;
  }
#pragma endscop
}
