/* Two matrix products, one after the other: the first result is scratch. */
void kernel(int n, int m, int k, long A[n][k], long B[k][m], long C[m][n], long T[n][m], long R[n][n], int scale)
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      T[i][j] = 0;
      for (int p = 0; p < k; p++)
        T[i][j] += scale * A[i][p] * B[p][j];
    }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      R[i][j] *= 3;
      for (int p = 0; p < m; p++)
        R[i][j] += T[i][p] * C[p][j];
    }
#pragma endscop
}
