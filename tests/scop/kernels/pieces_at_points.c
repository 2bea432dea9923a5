/* A statement in pieces, three of which are single points that follow each other. */
void kernel(int n, int m, int p[n + 9][n + 9], int q[m])
{
#pragma scop
  for (int i = 2; i < 6; i++)
    for (int j = 1; j <= n; j += 2) {
      if (j > i)
        continue;
      p[i][3] = 2 * p[3][j] + 1;
    }
  q[0] = n;
  q[m - 1] = m;
#pragma endscop
}
