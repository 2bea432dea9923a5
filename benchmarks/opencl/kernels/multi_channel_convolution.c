/* Images of P x Q results and C channels, filters R x S; the halo is part of the image. */
void multi_channel_convolution(const float image[N][P + R - 1][Q + S - 1][C],
                               const float filter[K][R][S][C], float out[N][P][Q][K])
{
#pragma scop
  for (int n = 0; n < N; n++)
    for (int p = 0; p < P; p++)
      for (int q = 0; q < Q; q++)
        for (int k = 0; k < K; k++) {
          out[n][p][q][k] = 0;
          for (int r = 0; r < R; r++)
            for (int s = 0; s < S; s++)
              for (int c = 0; c < C; c++)
                out[n][p][q][k] += image[n][p + r][q + s][c] * filter[k][r][s][c];
        }
#pragma endscop
}
