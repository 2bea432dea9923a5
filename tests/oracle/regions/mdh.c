// n=5 m=6
void f(int n, int m, float C[n], float A[n][m])
{
#mdh parallel(++, + : C[i])
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      C[i] += A[i][j];
}
