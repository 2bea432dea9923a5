/* Loops up to products of sizes, beside subscripts with the same products, others, and the factors alone. */
#include <stddef.h>
#include <stdio.h>
#define MOST 4000
static float a[MOST], b[MOST], c[MOST];
static void fill(void) {
  for (int i = 0; i < MOST; i++) { a[i] = i % 13 - 6; b[i] = i % 7; c[i] = i % 5 - 2; }
}
static float left(void) {
  float sum = 0;
  for (int i = 0; i < MOST; i++) sum += (i % 11 + 1) * (a[i] + 2 * b[i] + 3 * c[i]);
  return sum;
}
static void scaled(float *x, float s, int h, int w) {
  for (int i = 0; i < h * w; ++i) x[i] = x[i] * s + 1;
}
static void biased(float *x, const float *bias, int batch, int n, int h, int w) {
  for (int k = 0; k < batch; ++k)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < h * w; ++i) x[k * n * h * w + j * h * w + i] += bias[j];
}
static void two_ways(float *x, int h, int w) {
  for (int i = 0; i < w * h; ++i) x[i] = i;
  for (int i = 0; i < h; ++i)
    for (int j = 0; j < w; ++j) x[i * w + j] += i + x[j];
}
static void one_place(float *x, int h, int w, int p, int q) {
  for (int i = 0; i < h * w; ++i) x[i] = x[p * w + q] + 1;
}
static void places(float *x, int h, int w, int p, int q) {
  for (int i = 0; i < h * w; ++i) x[i] = x[i + p * q] + 1;
}
static float normal(float *mean, const float *x, int batch, int n, int h, int w) {
  int spatial = h * w, i, j, k;
  float all = 0, scale = (float)(batch * spatial);
  for (i = 0; i < n; ++i) {
    mean[i] = 0;
    for (j = 0; j < batch; ++j)
      for (k = 0; k < spatial; ++k) mean[i] += x[j * n * spatial + i * spatial + k];
    all += mean[i] + scale;
  }
  return all;
}
typedef struct { int h, w, c; float *data; } image;
static void shifted(image m, image other, float by) {
  int i, n = m.h * m.w * m.c;
  for (i = 0; i < n; ++i) m.data[i] += by;
  for (i = 0; i < m.c * m.h * m.w; ++i) m.data[i] *= 2;
  for (int k = 0; k < m.c; ++k)
    for (i = 0; i < m.h * m.w; ++i) other.data[k * m.h * m.w + i] += m.data[k * m.h * m.w + i];
}
static void set(float *x, size_t n, size_t m, unsigned u) {
  for (size_t i = 0; i < n * (m + 1); i++) x[i] = 5;
  for (unsigned i = 0; i < u * u; i++) x[i] = 7;
}
static void halves(float *x, const float *y, int n, int m) {
  for (int i = n * m - 1; i >= 0; i--) x[i] = y[i];
  for (int i = 0; i < n * m / 2; i++) x[2 * i] = y[n * m - 1 - i];
}
static void above(float *x, int n, int m, int k) {
  for (int i = 0; i < k; i++)
    if (i >= n * m) x[i] = i;
    else x[i] += 1;
}
int main(void) {
  const int sizes[][4] = {{7, 9, 3, 2}, {1, 40, 1, 1}, {12, 1, 2, 5}, {0, 5, 2, 2}, {-3, -4, 2, 3}, {-3, 4, 2, 3}};
  for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    const int h = sizes[k][0], w = sizes[k][1], n = sizes[k][2], m = sizes[k][3];
    fill(); scaled(a, 2, h, w); printf("%g ", left());
    fill(); biased(b, c, m, n, h, w); printf("%g ", left());
    fill(); two_ways(a, h, w); printf("%g ", left());
    fill(); one_place(c + 100, h, w, n, m); printf("%g ", left());
    fill(); places(c, h, w, n, m); printf("%g ", left());
    fill(); places(c + 100, h, w, -n, m); printf("%g ", left());
    fill(); places(c + 100, h, w, 0, m); printf("%g ", left());
    fill(); printf("%g ", normal(b, a, m, n, h, w)); printf("%g ", left());
    fill(); shifted((image){h, w, n, a}, (image){h, w, n, b}, 3); printf("%g ", left());
    fill(); set(a, (size_t)(h < 0 ? 0 : h), (size_t)(w < 0 ? 0 : w), 9); printf("%g ", left());
    fill(); halves(a, b, h, w); printf("%g ", left());
    fill(); above(a, h, w, 50); printf("%g\n", left());
  }
  return 0;
}
