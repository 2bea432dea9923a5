/* Row sums that start from the old value of the next result. */
void kernel(int n, int m, long x[n][m], long z[n + 1]) {
#pragma scop
  for (int r = 0; r < n; r++) {
    long s = z[r + 1];
    for (int c = 0; c < m; c++)
      s += x[r][c];
    z[r] = s;
  }
#pragma endscop
}
