/* The Mandelbrot set: fifty steps of which a condition on data ends the effect. */
#include <stdio.h>
#define W 64
#define H 40
static int count[H][W];
int main(void) {
#pragma scop
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++) {
      double cr = -2.0 + 3.0 * x / W, ci = -1.0 + 2.0 * y / H, zr = 0, zi = 0;
      count[y][x] = 0;
      for (int k = 0; k < 50; k++)
        if (zr * zr + zi * zi <= 4.0) {
          double t = zr * zr - zi * zi + cr;
          zi = 2 * zr * zi + ci;
          zr = t;
          count[y][x]++;
        }
    }
#pragma endscop
  long s = 0;
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++)
      s += (long)count[y][x] * (x + y);
  printf("%ld\n", s);
}
