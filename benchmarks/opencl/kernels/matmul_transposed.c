/* C = A^T B. */
void matmul_transposed(const float A[K][M], const float B[K][N], float C[M][N])
{
#pragma scop
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      C[i][j] = 0;
      for (int k = 0; k < K; k++)
        C[i][j] += A[k][i] * B[k][j];
    }
#pragma endscop
}
