/* Pointers that may be NULL: the loops run as they stand where one is. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
static void linear(float *out, const float *inp, const float *w, const float *bias, int n, int ci, int co) {
  for (int b = 0; b < n; b++)
    for (int o = 0; o < co; o++) {
      float val = (bias != NULL) ? bias[o] : 0.0f;
      for (int i = 0; i < ci; i++) val += inp[b * ci + i] * w[o * ci + i];
      out[b * co + o] = val;
    }
}
static void backward(float *dbias, const float *dout, int n, int co) {
  for (int b = 0; b < n; b++)
    for (int o = 0; o < co; o++)
      if (dbias) dbias[o] += dout[b * co + o];
}
static void shift(int n, float *x, const float *by) {
  if (!by || n > 1000000) for (int i = 0; i < n; i++) x[i] -= 1;
  else for (int i = 0; i < n; i++) x[i] -= by[i];
}
typedef struct { float v; int k; } item;
typedef struct { float *data; item *items; int n; } box;
static int scale(box *b, float a) {
  if (b == NULL || b->data == NULL || b->n <= 0) return 1;
  for (int i = 0; i < b->n; i++) b->data[i] *= a;
  return 0;
}
static void keys(item *p, const int *k, int n) {
  if (!p) return;
  for (int i = 0; i < n; i++) { p[i].v += k ? k[i] : 1; p[i].k = i; }
}
static void only(const float *flag, float *x, int n) {
  for (int i = 0; i < n; i++) if (flag != NULL) x[i] = 1;
}
static float more(box *b) {
  float s = 0;
  if (b && b->items)
    for (int i = 0; i < b->n; i++) { b->items[i].v *= 3; s += b->items[i].v; }
  return s;
}
static void plain(float *out, const float *inp, const float *w) {
  linear(out, inp, w, NULL, 40, 30, 20);
  backward((float *)0, out, 40, 20);
  for (int i = 0; i < 800; i++) out[i] *= 2;
}
static void layers(void) {
  static float x[40*30], w[20*30], b[20], y[40*20], d[20];
  for (int i = 0; i < 1200; i++) x[i] = i % 17 - 8;
  for (int i = 0; i < 600; i++) w[i] = i % 13 - 6;
  for (int i = 0; i < 20; i++) b[i] = i;
  float s = 0;
  for (int r = 0; r < 2; r++) {
    linear(y, x, w, r ? b : NULL, 40, 30, 20);
    backward(r ? d : NULL, y, 40, 20);
    shift(20, d, r ? b : 0);
    for (int i = 0; i < 800; i++) s += y[i] * (i % 7) + d[i % 20];
  }
  plain(y, x, w);
  for (int i = 0; i < 800; i++) s += y[i] * (i % 5);
  printf("%g\n", s);
}
int main(void) {
  layers();
  float d[50]; item t[50] = {{0, 0}}; int k[50];
  for (int i = 0; i < 50; i++) { d[i] = i; k[i] = 2 * i; }
  box b = {d, t, 50};
  int r = scale(&b, 2) + scale(NULL, 2);
  keys(t, k, 50); keys(t, NULL, 50); keys(NULL, k, 50);
  only(NULL, d, 3);
  float s = more(NULL) + more(&b);
  box e = {d, NULL, 50}; s += more(&e);
  for (int i = 0; i < 50; i++) s += d[i] + t[i].v * t[i].k;
  printf("%d %g\n", r, s);
  return 0;
}
