// h=7 w=9 in[63] out[63] a[40]
/* What wraps on the way to a subscript: C's unsigned sums are right modulo 2 to the 64. */
#include <stddef.h>
#include <stdint.h>
void blur(size_t h, size_t w, float *restrict in, float *restrict out, int32_t *a)
{
#pragma scop
  for (size_t y = 1; y + 1 < h; ++y)
    for (size_t x = 1; x + 1 < w; ++x) {
      float s = 0;
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; dx += 2)
          s += in[(y + dy) * w + (x + dx)];
      out[y * w + x] = s;
    }
  for (size_t i = 3; i < 12; i++) {
    a[i - 5 + 4] += 1;
    a[-i + 2 * i - 3] += 2;
    if (i > 5)
      a[3 * (i - 4) - i] -= 4;
  }
  for (uint32_t i = 2; i < 9; i++)
    for (int32_t j = -2; j < 3; j++)
      a[20u - i + j * 2 + (i - 1)] += j;
#pragma endscop
}
