/* The smallest element of each row and where it stands, and how often each value occurs. */
void kernel(int n, int m, long x[n][m], long least[n], long place[n], long count[8])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    least[r] = x[r][0];
    place[r] = 0;
    for (int c = 1; c < m; c++)
      if (x[r][c] < least[r]) {
        least[r] = x[r][c];
        place[r] = c;
      }
  }
  for (int v = 0; v < 8; v++)
    count[v] = 0;
  for (int r = 0; r < n; r++)
    for (int c = 0; c < m; c++)
      count[x[r][c] & 7] += 1;
#pragma endscop
}
