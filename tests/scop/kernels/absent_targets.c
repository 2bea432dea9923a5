/* Writes that data decide, of elements that do not exist where the condition does not hold. */
void kernel(int n, int m, int a[n], int f[n], int w[n], int A[n][m])
{
#pragma scop
  for (int i = 0; i < n; i++)
    f[i] = a[i] > 2;
  f[n - 1] = 0;
  for (int i = 0; i < n; i++)
    if (f[i])
      w[i + 1] = a[i];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      if (f[i] && a[i] > 3)
        A[i + 1][j] = a[i] + j;
#pragma endscop
}
