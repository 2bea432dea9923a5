/* A filter of 5 x 5 weights over an image with its halo. */
void gaussian(const float image[H + 4][W + 4], const float filter[5][5], float out[H][W])
{
#pragma scop
  for (int i = 0; i < H; i++)
    for (int j = 0; j < W; j++) {
      out[i][j] = 0;
      for (int r = 0; r < 5; r++)
        for (int s = 0; s < 5; s++)
          out[i][j] += image[i + r][j + s] * filter[r][s];
    }
#pragma endscop
}
