/* Images of bytes whose sizes nobody knows: windows, borders, running sums, mirrored rows, choices. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void eroded(int h, int w, const uint8_t *s, uint8_t *d)
{
  for (int y = 1; y < h - 1; y++)
    for (int x = 1; x < w - 1; x++) {
      uint8_t m = 255;
      for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++)
          if (s[(y + j) * w + x + i] < m)
            m = s[(y + j) * w + x + i];
      d[y * w + x] = m;
    }
}

void neighbours(int h, int w, const uint8_t *s, uint8_t *d)
{
  for (int y = 1; y < h - 1; y++)
    for (int x = 1; x < w - 1; x++) {
      int t = 0;
      for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++)
          if (i || j)
            t += s[(y + j) * w + x + i];
      d[y * w + x] = t % 7 == 3 || (t % 5 == 2 && s[y * w + x]);
    }
}

void integral(int h, int w, const uint8_t *s, uint32_t *d)
{
  for (int y = 0; y < h; y++) {
    uint32_t r = 0;
    for (int x = 0; x < w; x++) {
      r += s[y * w + x];
      d[y * w + x] = r + (y ? d[(y - 1) * w + x] : 0);
    }
  }
}

void mirrored(int h, int w, uint8_t *s)
{
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w / 2; x++) {
      uint8_t t = s[y * w + x];
      s[y * w + x] = s[y * w + w - 1 - x];
      s[y * w + w - 1 - x] = t;
    }
}

void gray(int n, const uint8_t *rgb, uint8_t *y)
{
  for (int i = 0; i < n; i++)
    y[i] = (uint8_t)((77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8);
}

void bytes(int n, const float *s, uint8_t *d)
{
  for (int i = 0; i < n; i++) {
    float v = s[i] * 255.0f + 0.5f;
    d[i] = v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
  }
}

void halved(int h, int w, const uint8_t *s, uint8_t *d)
{
  for (int y = 0; y < h / 2; y++)
    for (int x = 0; x < w / 2; x++)
      d[y * (w / 2) + x] = (s[2 * y * w + 2 * x] + s[2 * y * w + 2 * x + 1] + s[(2 * y + 1) * w + 2 * x]
                            + s[(2 * y + 1) * w + 2 * x + 1] + 2) >> 2;
}

static uint32_t hash(const void *memory, size_t size)
{
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < size; i++)
    h = (h ^ ((const uint8_t *)memory)[i]) * 16777619u;
  return h;
}

static void tried(int h, int w)
{
  const size_t n = (size_t)h * w, room = n + 1;
  uint8_t *s = malloc(3 * room), *d = calloc(room, 4);
  float *f = malloc(room * sizeof *f);
  for (size_t i = 0; i < 3 * room; i++)
    s[i] = (uint8_t)((i * i * 31 + i * 7) >> 3);
  for (size_t i = 0; i < room; i++)
    f[i] = (float)((int)(i * 37 % 301) - 20) / 256;
  eroded(h, w, s, d);
  printf("%d %d: %08x", h, w, hash(d, n));
  neighbours(h, w, s, d);
  printf(" %08x", hash(d, n));
  gray((int)n, s, d);
  printf(" %08x", hash(d, n));
  bytes((int)n, f, d);
  printf(" %08x", hash(d, n));
  halved(h, w, s, d);
  printf(" %08x", hash(d, n));
  integral(h, w, s, (uint32_t *)d);
  printf(" %08x", hash(d, 4 * n));
  mirrored(h, w, s);
  printf(" %08x\n", hash(s, 3 * n));
  free(s), free(d), free(f);
}

int main(void)
{
  for (int h = 0; h < 5; h++)
    for (int w = 0; w < 6; w++)
      tried(h, w);
  tried(37, 150);
  tried(130, 67);
  tried(9, 1000);
  return 0;
}
