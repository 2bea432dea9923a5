/* A convolution of four-dimensional arrays with a bias and a rectifier. */
#include <stdio.h>
enum { B = 2, C = 3, K = 4, H = 9, W = 8, R = 3 };
static int in[B][C][H][W], wt[K][C][R][R], out[B][K][H - R + 1][W - R + 1], bias[K];
int main(void) {
  int v = 1;
  for (int b = 0; b < B; b++)
    for (int c = 0; c < C; c++)
      for (int h = 0; h < H; h++)
        for (int w = 0; w < W; w++)
          in[b][c][h][w] = (v = v * 75 % 65537) % 11;
  for (int k = 0; k < K; k++) {
    bias[k] = k * 10 - 20;
    for (int c = 0; c < C; c++)
      for (int r = 0; r < R; r++)
        for (int s = 0; s < R; s++)
          wt[k][c][r][s] = (v = v * 75 % 65537) % 7 - 3;
  }
#pragma scop
  for (int b = 0; b < B; b++)
    for (int k = 0; k < K; k++)
      for (int y = 0; y <= H - R; y++)
        for (int x = 0; x <= W - R; x++) {
          out[b][k][y][x] = bias[k];
          for (int c = 0; c < C; c++)
            for (int r = 0; r < R; r++)
              for (int s = 0; s < R; s++)
                out[b][k][y][x] += in[b][c][y + r][x + s] * wt[k][c][r][s];
          if (out[b][k][y][x] < 0)
            out[b][k][y][x] = 0;
        }
#pragma endscop
  long q = 0;
  for (int b = 0; b < B; b++)
    for (int k = 0; k < K; k++)
      for (int y = 0; y <= H - R; y++)
        for (int x = 0; x <= W - R; x++)
          q = q * 31 % 1000003 + out[b][k][y][x];
  printf("%ld\n", q);
}
