/* Structures with pointers, given by value to functions in the file that leave them as they are, or do not. */
#include <stdio.h>
typedef struct { int w, h, c; float *data; } image;
static float a[600], b[600];
static float at(image m, int x, int y, int c) { return m.data[c * m.h * m.w + y * m.w + x]; }
static void put(image m, int x, int y, int c, float value) {
  if (x < 0 || y < 0 || c < 0 || x >= m.w || y >= m.h || c >= m.c) return;
  m.data[c * m.h * m.w + y * m.w + x] = value;
}
static float wide(image m, int i) { m.w = 2 * m.w; return m.data[0] + m.w + i; }
static float seen(image m, image *same, int i) { same->w = i; return (float)m.w; }
static void flipped(image out, image in) {
  for (int k = 0; k < in.c; k++)
    for (int y = 0; y < in.h; y++)
      for (int x = 0; x < in.w; x++) put(out, in.w - 1 - x, y, k, at(in, x, y, k) + 1);
}
static void spread(image m, float *y) {
  for (int i = 0; i < m.h; i++) y[i] = wide(m, i) + m.w;
}
static void told(image m, float *y) {
  for (int i = 0; i < m.h; i++) y[i] = seen(m, &m, i);
}
static float left(void) {
  float sum = 0;
  for (int i = 0; i < 600; i++) sum += (i % 13 + 1) * (a[i] + 2 * b[i]);
  return sum;
}
int main(void) {
  image in = {10, 12, 3, a}, out = {10, 12, 3, b}, small = {7, 9, 2, b};
  for (int i = 0; i < 600; i++) { a[i] = i % 7; b[i] = i % 5; }
  flipped(out, in); printf("%g ", left());
  flipped(small, in); printf("%g ", left());
  flipped(in, in); printf("%g ", left());
  spread(in, b); printf("%g ", left());
  told(in, b + 100); printf("%g\n", left());
  return 0;
}
