/* Elements in front of the one that a pointer points to: the loops run as they stand where some are accessed. */
#include <stdio.h>
static float a[400], b[400];
static void delayed(float *y, const float *x, int n, int delay) {
  for (int i = 0; i < n; i++) y[i] = x[i - delay] + y[i + delay];
}
static void turned(float *x, int from, int to) {
  for (int i = from; i < to; i++) x[i] = x[-i] + 1;
}
static void filtered(float *y, const float *x, int n) {
  for (int i = 0; i < n; i++) y[i] += x[i - 1] + x[i - 2];
}
static void counted(float *x, int from, int to) {
  for (int i = from; i < to; i++) x[i] += i;
}
static float left(void) {
  float sum = 0;
  for (int i = 0; i < 400; i++) sum += (i % 11 + 1) * (a[i] + 2 * b[i]);
  return sum;
}
int main(void) {
  for (int i = 0; i < 400; i++) { a[i] = i % 7; b[i] = i % 5; }
  for (int delay = -9; delay < 10; delay += 3) { delayed(a + 100, b + 100, 150, delay); printf("%g ", left()); }
  for (int delay = -9; delay < 10; delay += 3) { delayed(a + 100, a + 150, 90, delay); printf("%g ", left()); }
  turned(a + 200, -9, 9); printf("%g ", left());
  turned(a + 200, -9, 0); printf("%g ", left());
  turned(a + 200, 0, 1); printf("%g ", left());
  filtered(a + 2, b + 2, 300); printf("%g ", left());
  filtered(a + 3, a + 2, 300); printf("%g ", left());
  counted(a + 9, -9, 9); printf("%g ", left());
  counted(a + 9, 2, 9); printf("%g ", left());
  counted(a, 9, 2); printf("%g\n", left());
  return 0;
}
