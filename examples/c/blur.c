/* A 5 x 5 blur of an image of bytes, and its brightest and darkest pixel: three SCoPs in one program. */
#include <stdio.h>

#define H 121
#define W 203
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static unsigned char image[H + 4][W + 4], blurred[H][W];
static const int weight[5] = {1, 4, 6, 4, 1};

static void blur(void)
{
#pragma scop
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++) {
      int sum = 0;
      for (int j = 0; j < 5; j++)
        for (int i = 0; i < 5; i++)
          sum += weight[j] * weight[i] * image[y + j][x + i];
      blurred[y][x] = (unsigned char)((sum + 128) / 256);
    }
#pragma endscop
}

int main(void)
{
  for (int y = 0; y < H + 4; y++)
    for (int x = 0; x < W + 4; x++)
      image[y][x] = (unsigned char)(x * y + 11 * x + 5 * y);
  blur();

  int brightest = 0, darkest = 255;
#pragma scop
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++)
      brightest = MAX(brightest, blurred[y][x]);
#pragma endscop

#pragma scop
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++)
      if (blurred[y][x] < darkest)
        darkest = blurred[y][x];
#pragma endscop

  long sum = 0;
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++)
      sum += (long)(y + 2 * x) * blurred[y][x];
  printf("blur: %ld, from %d to %d\n", sum, darkest, brightest);
  return 0;
}
