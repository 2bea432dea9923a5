/* A contraction of the last axis in place, through a scratch row that every pair of outer indices reuses. */
void kernel(int n, int m, int k, long A[n][m][k], long W[k][k])
{
#pragma scop
  long row[16];
  for (int a = 0; a < n; a++)
    for (int b = 0; b < m; b++) {
      for (int p = 0; p < k; p++) {
        row[p] = 0;
        for (int s = 0; s < k; s++)
          row[p] += A[a][b][s] * W[s][p];
      }
      for (int p = 0; p < k; p++)
        A[a][b][p] = row[p];
    }
#pragma endscop
}
