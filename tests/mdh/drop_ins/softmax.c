/* A softmax of each row. */
#include <math.h>
#include <stdio.h>
#define R 13
#define N 37
static double x[R][N], y[R][N];
int main(void) {
  for (int i = 0; i < R; i++)
    for (int j = 0; j < N; j++)
      x[i][j] = ((i * 7 + j * 3) % 19) / 4.0;
#pragma scop
  for (int i = 0; i < R; i++) {
    double m = x[i][0];
    for (int j = 1; j < N; j++)
      m = fmax(m, x[i][j]);
    double s = 0;
    for (int j = 0; j < N; j++) {
      y[i][j] = exp(x[i][j] - m);
      s += y[i][j];
    }
    for (int j = 0; j < N; j++)
      y[i][j] /= s;
  }
#pragma endscop
  double s = 0;
  for (int i = 0; i < R; i++)
    for (int j = 0; j < N; j++)
      s += y[i][j] * (j + 1);
  printf("%.6f\n", s);
}
