/* A recursive filter along each row, with its state in scalars. */
void kernel(int n, int m, long in[n][m], long out[n][m])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    long before = 0, earlier = 0;
    for (int c = 0; c < m; c++) {
      out[r][c] = in[r][c] - before + 2 * earlier;
      earlier = before;
      before = out[r][c] % 7;
    }
  }
#pragma endscop
}
