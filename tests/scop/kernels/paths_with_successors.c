/* Shortest paths, and where each begins: a length and a place under one condition, in nine regions. */
void kernel(int n, long d[n][n], int next[n][n])
{
#pragma scop
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        if (d[i][k] + d[k][j] < d[i][j]) {
          d[i][j] = d[i][k] + d[k][j];
          next[i][j] = next[i][k];
        }
#pragma endscop
}
