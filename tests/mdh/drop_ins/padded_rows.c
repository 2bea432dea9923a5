/* Rows whose pitch is another size, or a product of others; the loops run as they stand where that is not so. */
#include <stdio.h>
#include <string.h>
#define MOST 6000
static float a[MOST], b[MOST], c[MOST], d[MOST];
static unsigned char picture[MOST], grey[MOST];
static void fill(void) {
  for (int i = 0; i < MOST; i++) { a[i] = i % 13 - 6; b[i] = i % 7; c[i] = 1; d[i] = i % 5 - 2; }
  for (int i = 0; i < MOST; i++) picture[i] = (unsigned char)(i * 7);
  memset(grey, 0, sizeof grey);
}
static float left(void) {
  float sum = 0;
  for (int i = 0; i < MOST; i++) sum += (i % 3 + 1) * (b[i] + c[i] + 2 * d[i] + grey[i]);
  return sum;
}
static void normal(float *probs, const float *logits, int B, int T, int V, int Vp) {
  for (int i = 0; i < B; i++)
    for (int t = 0; t < T; t++) {
      const float *l = logits + i * T * Vp + t * Vp;
      float *p = probs + i * T * Vp + t * Vp;
      float most = -100;
      for (int k = 0; k < V; k++)
        if (l[k] > most) most = l[k];
      float sum = 0;
      for (int k = 0; k < V; k++) { p[k] = most - l[k]; sum += p[k]; }
      for (int k = 0; k < V; k++) p[k] += sum;
      for (int k = V; k < Vp; k++) p[k] = 0;
    }
}
static void totals(float *sum, const float *x, int n, int V, int Vp) {
  for (int i = 0; i < n; i++) {
    sum[i] = 0;
    for (int k = 0; k < V; k++) sum[i] += x[i * Vp + k];
  }
}
static void heads(float *out, float *score, const float *inp, int B, int T, int C, int NH) {
  int C3 = C * 3, hs = C / NH;
  for (int i = 0; i < B; i++)
    for (int t = 0; t < T; t++)
      for (int h = 0; h < NH; h++) {
        const float *query = inp + i * T * C3 + t * C3 + h * hs;
        float *row = score + i * NH * T * T + h * T * T + t * T;
        float most = -1000;
        for (int s = 0; s <= t; s++) {
          const float *key = inp + i * T * C3 + s * C3 + h * hs + C;
          float value = 0;
          for (int k = 0; k < hs; k++) value += query[k] * key[k];
          if (value > most) most = value;
          row[s] = value;
        }
        float *o = out + i * T * C + t * C + h * hs;
        for (int k = 0; k < hs; k++) o[k] = 0;
        for (int s = 0; s <= t; s++) {
          const float *given = inp + i * T * C3 + s * C3 + h * hs + C * 2;
          for (int k = 0; k < hs; k++) o[k] += (most - row[s]) * given[k];
        }
      }
}
static void colours(unsigned char *out, const unsigned char *in, int width, int height) {
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      int sum = 0;
      for (int k = 0; k < 3; k++) sum += in[(y * width + x) * 3 + k];
      for (int k = 0; k < 3; k++) out[(y * width + x) * 3 + k] = (unsigned char)(sum / 3 + k);
    }
}
static void blocks(float *x, const float *y, int n, int m, int bs, int nb) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < nb; k++)
      for (int j = 0; j < bs; j++) x[i * m + k * bs + j] += y[k * bs + j];
}
int main(void) {
  const int padded[][4] = {{2, 5, 30, 32}, {2, 5, 32, 32}, {3, 4, 1, 9}, {2, 5, 33, 32}, {2, 3, 40, 8},
                           {2, 5, 0, 32},  {2, 5, -3, 4},  {0, 5, 9, 3}, {2, 4, 5, 0}};
  for (unsigned k = 0; k < sizeof padded / sizeof *padded; k++) {
    const int *p = padded[k];
    fill(); normal(b + 100, a + 100, p[0], p[1], p[2], p[3]);
    totals(c, a, p[0] * 10, p[2], p[3]);
    printf("%g\n", left());
  }
  const int split[][4] = {{2, 6, 12, 3}, {1, 7, 10, 3}, {2, 5, 8, 1}, {2, 5, 3, 7}, {0, 5, 8, 2}};
  for (unsigned k = 0; k < sizeof split / sizeof *split; k++) {
    const int *p = split[k];
    fill(); heads(b, c, a, p[0], p[1], p[2], p[3]);
    printf("%g\n", left());
  }
  const int cut[][4] = {{9, 12, 4, 3}, {9, 13, 4, 3}, {9, 11, 4, 3}, {9, 0, 4, 3}};
  for (unsigned k = 0; k < sizeof cut / sizeof *cut; k++) {
    fill(); blocks(b, d, cut[k][0], cut[k][1], cut[k][2], cut[k][3]);
    printf("%g\n", left());
  }
  fill(); colours(grey, picture, 37, 29);
  printf("%g\n", left());
  return 0;
}
