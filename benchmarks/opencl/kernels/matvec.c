/* y = A x. */
void matvec(const float A[M][N], const float x[N], float y[M])
{
#pragma scop
  for (int i = 0; i < M; i++) {
    y[i] = 0;
    for (int j = 0; j < N; j++)
      y[i] += A[i][j] * x[j];
  }
#pragma endscop
}
