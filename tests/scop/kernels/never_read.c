/* Reads that are only asked for where their statement never runs, beside others that sometimes are. */
void kernel(int n, int m, long x[60], long y[60], long z[60], long t[60][60])
{
#pragma scop
  if (n > 3 || t[m + 1][m + 2] != t[4][n])
    for (int i = 2; i < n - 1; i++)
      x[i] += x[i];
  for (int i = 5; i < n; i++)
    if (n > 4 || y[m] > t[i][m])
      y[i] = i;
  for (int i = 0; i < n; i++)
    z[i] = i >= 0 ? x[i] + 1 : y[2 * i + m];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++)
      t[i][j] = i > j || z[i + j] > 2 ? t[i][j] + (i < 4 ? x[i] : y[j]) : z[j] + t[j][i];
  for (int i = 3; i < n; i++)
    z[2 * i] = i < 3 && x[i] > 0 ? t[i][n] : i % 2 == 0 || y[i] > 2 ? x[i] : 7;
#pragma endscop
}
