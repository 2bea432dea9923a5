/* Domains that are boxes after a shift, a stride, a turn; and a scattered sum along diagonals. */
void kernel(int n, int m, long a[3 * n + m], long b[n][m], long c[n + m])
{
#pragma scop
  for (int i = 0; i < 3 * n; i += 3)
    a[i] = i;
  for (int i = n - 1; i >= 0; i--)
    for (int j = i; j < i + m; j++)
      b[i][j - i] = a[j] + i;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      c[i + j] += b[i][j];
  for (int i = 0; i < n; i++)
    for (int j = i; j < i + m; j++)
      c[j] += b[i][j - i] * i;
#pragma endscop
}
