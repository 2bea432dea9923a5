/* Writes that data decide, of elements of which nobody knows whether they exist where the condition does not hold. */
void kernel(int n, int m, int *w, const int f[n], const int F[n][m], const int A[n][m], int *s, int *t, int B[n][m])
{
#pragma scop
  for (int i = 0; i < n; i++)
    if (f[i] > 1)
      w[i + 1] = f[i] * 2;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      if (F[i][j] > 1)
        s[i] += A[i][j];
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++)
      if (f[j] > 1)
        B[i][0] = A[i][0] + f[i];
  for (int i = 0; i < n; i++) {
    t[i] = 0;
    if (f[i] > 1)
      t[i] = A[i][0];
  }
#pragma endscop
}
