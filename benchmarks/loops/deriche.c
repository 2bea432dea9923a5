/* An edge filter: recursive passes over an image from left, right, top and bottom. */
#ifndef REAL
#define REAL double
#endif
#include <math.h>

void kernel(int w, int h, REAL alpha, REAL in[w][h], REAL out[w][h], REAL f[w][h], REAL g[w][h])
{
#pragma scop
  REAL decay = exp(-alpha);
  REAL gain = (1 - decay) * (1 - decay) / (1 + 2 * alpha * decay - decay * decay);
  REAL near = gain * decay * (alpha - 1);
  REAL far = gain * decay * (alpha + 1);
  REAL behind = -gain * decay * decay;
  REAL b1 = 2 * decay;
  REAL b2 = -decay * decay;
  REAL y1, y2, x1, x2;
  for (int i = 0; i < w; i++) {
    y1 = 0;
    y2 = 0;
    x1 = 0;
    for (int j = 0; j < h; j++) {
      f[i][j] = gain * in[i][j] + near * x1 + b1 * y1 + b2 * y2;
      x1 = in[i][j];
      y2 = y1;
      y1 = f[i][j];
    }
  }
  for (int i = 0; i < w; i++) {
    y1 = 0;
    y2 = 0;
    x1 = 0;
    x2 = 0;
    for (int j = h - 1; j >= 0; j--) {
      g[i][j] = far * x1 + behind * x2 + b1 * y1 + b2 * y2;
      x2 = x1;
      x1 = in[i][j];
      y2 = y1;
      y1 = g[i][j];
    }
  }
  for (int i = 0; i < w; i++)
    for (int j = 0; j < h; j++)
      out[i][j] = f[i][j] + g[i][j];
  for (int j = 0; j < h; j++) {
    x1 = 0;
    y1 = 0;
    y2 = 0;
    for (int i = 0; i < w; i++) {
      f[i][j] = gain * out[i][j] + near * x1 + b1 * y1 + b2 * y2;
      x1 = out[i][j];
      y2 = y1;
      y1 = f[i][j];
    }
  }
  for (int j = 0; j < h; j++) {
    x1 = 0;
    x2 = 0;
    y1 = 0;
    y2 = 0;
    for (int i = w - 1; i >= 0; i--) {
      g[i][j] = far * x1 + behind * x2 + b1 * y1 + b2 * y2;
      x2 = x1;
      x1 = out[i][j];
      y2 = y1;
      y1 = g[i][j];
    }
  }
  for (int i = 0; i < w; i++)
    for (int j = 0; j < h; j++)
      out[i][j] = f[i][j] + g[i][j];
#pragma endscop
}
