/* One pass over a matrix feeds a sum along the rows and a sum along the columns. */
void kernel(int n, int m, long A[n][m], long x[m], long y[n], long across[n], long down[m])
{
#pragma scop
  for (int j = 0; j < m; j++)
    down[j] = 0;
  for (int i = 0; i < n; i++) {
    across[i] = 0;
    for (int j = 0; j < m; j++) {
      down[j] = down[j] + y[i] * A[i][j];
      across[i] = across[i] + A[i][j] * x[j];
    }
  }
#pragma endscop
}
