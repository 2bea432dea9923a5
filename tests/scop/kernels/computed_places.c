/* What is read says where something else is read: a sum that stays apart, and a map that turns and comes along. */
void kernel(int n, int m, long a[n][m], long x[64], long y[n], long z[m][n])
{
#pragma scop
  long sum[n];
  for (int i = 0; i < n; i++) {
    sum[i] = 0;
    for (int j = 0; j < m; j++)
      sum[i] += a[i][j];
  }
  for (int i = 0; i < n; i++)
    y[i] = sum[i] + x[sum[i] & 63];
  long place[n][m];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      place[i][j] = 3 * i + j + a[i][j];
  for (int j = 0; j < m; j++)
    for (int i = 0; i < n; i++)
      z[j][i] = x[place[i][j] & 63];
#pragma endscop
}
