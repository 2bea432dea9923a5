/* Scans whose terms are sums, products, differences, or the element itself; the largest so far. A NaN starts `low` anew, so it is none. */
void kernel(int n, int m, double x[n], double z[n], double y[n], double back[n + 1], double high[n], float low[n], float f[n],
            long p[n], short c[n], double t[n][m], double u[n][m])
{
#pragma scop
  for (int i = 1; i < n; i++)
    y[i] = y[i - 1] + x[i] + z[i];
  for (int i = n - 1; i >= 0; i--)
    back[i] = x[i] - (z[i] - back[i + 1]);
  for (int i = 1; i < n; i++)
    high[i] = x[i] > high[i - 1] ? x[i] : high[i - 1];
  for (int i = 1; i < n; i++)
    low[i] = low[i - 1] < f[i] * 2 ? low[i - 1] : f[i] * 2;
  for (int i = 1; i < n; i++)
    p[i] = c[i] * p[i - 1] * (p[i] & 3);
  for (int i = 1; i < n; i++)
    c[i] += c[i - 1];
  for (int j = 0; j < m; j++)
    for (int i = 1; i < n; i++)
      t[i][j] = t[i - 1][j] + t[i][j];
  for (int i = 0; i < n; i++)
    for (int j = 1; j < m; j++)
      u[i][j] += u[i][j - 1] - t[i][j];
#pragma endscop
}
