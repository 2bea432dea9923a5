// n=5 m=4 k=6
void gemm(int n, int m, int k, double alpha, double beta, double C[n][m], const double A[n][k], double B[k][m])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] *= beta;
      for (int l = 0; l < k; ++l)
        C[i][j] += alpha * A[i][l] * B[l][j];
    }
#pragma endscop
}
