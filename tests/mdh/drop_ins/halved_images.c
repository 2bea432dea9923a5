/* Images whose rows are as long as a quotient of a size, or padded, and are read beyond their borders. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#define MOST 6000
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
static unsigned char a[MOST], b[MOST];
static float x[MOST], y[MOST];
static void fill(void) {
  for (int i = 0; i < MOST; i++) { a[i] = i * 7 % 251; b[i] = i % 13; x[i] = i % 17 - 8; y[i] = i % 5; }
}
static double left(void) {
  double sum = 0;
  for (int i = 0; i < MOST; i++) sum += (i % 19 + 1) * (a[i] + 3 * b[i] + 5 * x[i] + 7 * y[i]);
  return sum;
}
static void halved(unsigned char *d, const unsigned char *s, int w, int h) {
  for (int i = 0; i < h / 2; i++)
    for (int j = 0; j < w / 2; j++)
      d[i * (w / 2) + j] = (s[2 * i * w + 2 * j] + s[2 * i * w + 2 * j + 1] + s[(2 * i + 1) * w + 2 * j] + 1) / 3;
}
static void of_colours(unsigned char *u, const unsigned char *rgb, int w, int h) {
  for (int i = 0; i < h; i += 2)
    for (int j = 0; j < w; j += 2) u[(i / 2) * ((w + 1) / 2) + j / 2] = rgb[3 * (i * w + j)];
}
static void doubled(float *d, const float *s, unsigned w, unsigned h) {
  for (unsigned i = 0; i < h; i++)
    for (unsigned j = 0; j < w; j++) d[i * w + j] = s[(i / 2) * (w / 2) + j / 2];
}
static void padded(float *d, const float *s, int w, int h) {
  int row = (w + 3) & ~3, other = (w + 7) / 8 * 8;
  for (int i = 0; i < h; i++)
    for (int j = 0; j < w; j++) d[i * row + j] = s[i * other + j] + 1;
}
static void sides(float *d, const float *s, int w, int h) {
  int half = w >> 1;
  for (int i = 0; i < h; i++)
    for (int j = 0; j < half; j++) {
      d[i * w + j] = s[i * w + 2 * j] + s[i * w + 2 * j + 1];
      d[i * w + half + j] = s[i * w + 2 * j] - s[i * w + 2 * j + 1];
    }
}
static int inside(int v, int least, int most) { return v < least ? least : v > most ? most : v; }
static void blurred(float *d, const float *s, int w, int h) {
  for (int i = 0; i < h; i++)
    for (int j = 0; j < w; j++) {
      float sum = 0;
      for (int k = -1; k <= 1; k++)
        for (int l = -1; l <= 1; l++) sum += s[inside(i + k, 0, h - 1) * w + inside(j + l, 0, w - 1)];
      d[i * w + j] = sum;
    }
}
static void rows(float *d, const float *s, size_t w, size_t h) {
  for (size_t i = 0; i < h; i++)
    for (size_t j = 0; j < w; j++) {
      size_t above = i > 0 ? i - 1 : 0, below = MIN(i + 1, h - 1);
      d[i * w + j] = s[above * w + j] - s[below * w + j];
    }
}
static void fours(float *d, const float *s, size_t n, int m) {
  size_t i;
  for (i = 0; i < (n & ~(size_t)3); i += 4) {
    d[i] += s[i]; d[i + 1] += s[i + 1]; d[i + 2] += s[i + 2]; d[i + 3] += s[i + 3];
  }
  for (; i < n; i++) d[i] -= s[i];
  for (int k = -m; k < m; k++) d[(k & -4) + m + 4] += s[~k + m] + s[(k & 3) + (k & ~1) + m + 1];
}
static void tables(unsigned char *d, const unsigned char *s, unsigned w, unsigned h) {
  for (unsigned i = 0; i < h; i++)
    for (unsigned j = 0; j < w; j++) d[i * w + j] ^= s[(i & 3) * w + j] + s[(i % 5) * w + j];
}
int main(void) {
  fill();
  for (int w = 0; w < 12; w++)
    for (int h = 1; h < 9; h += 3) {
      halved(b, a, w, h);
      of_colours(b, a, w, h);
      doubled(x, y, w, h);
      padded(x, y, w, h);
      sides(y, x, w, h);
      blurred(x, y, w, h);
      rows(y, x, w, h);
      fours(x, y, w * h, w);
      tables(a, b, w, h);
      for (int i = 0; i < MOST; i++) { x[i] = (int)x[i] % 64; y[i] = (int)y[i] % 64; }
      printf("%.17g\n", left());
    }
  return 0;
}
