/* C[b] = A[b] B[b], for each b. */
void batched_matmul(const float A[L][M][K], const float B[L][K][N], float C[L][M][N])
{
#pragma scop
  for (int b = 0; b < L; b++)
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        C[b][i][j] = 0;
        for (int k = 0; k < K; k++)
          C[b][i][j] += A[b][i][k] * B[b][k][j];
      }
#pragma endscop
}
