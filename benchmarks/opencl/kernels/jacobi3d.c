/* One step of a 7-point stencil. */
void jacobi3d(const float in[N + 2][N + 2][N + 2], float out[N][N][N])
{
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < N; k++)
        out[i][j][k] = 0.4f * in[i + 1][j + 1][k + 1]
                     + 0.1f * (in[i][j + 1][k + 1] + in[i + 2][j + 1][k + 1]
                             + in[i + 1][j][k + 1] + in[i + 1][j + 2][k + 1]
                             + in[i + 1][j + 1][k] + in[i + 1][j + 1][k + 2]);
#pragma endscop
}
