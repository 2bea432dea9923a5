/* Running sums: through a scalar for each row, and from neighbour to neighbour. */
void kernel(int n, int m, long x[n][m], long y[n][m], long z[m])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    long sum = 0;
    for (int c = 0; c < m; c++) {
      sum += x[r][c];
      y[r][c] = 3 * sum - 1;
    }
  }
  for (int c = 1; c < m; c++)
    z[c] = z[c - 1] + x[0][c];
#pragma endscop
}
