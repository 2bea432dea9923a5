/* A wave on a string: a loop over time around two sweeps. */
#include <stdio.h>
#include <stdlib.h>
void wave(int n, int steps, double c, double *u, double *v) {
#pragma scop
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++)
      v[i] += c * (u[i - 1] - 2 * u[i] + u[i + 1]);
    for (int i = 1; i < n - 1; i++)
      u[i] += v[i];
  }
#pragma endscop
}
int main(void) {
  int n = 500;
  double *u = calloc(n, 8), *v = calloc(n, 8);
  u[n / 2] = 1024 * 1024;
  wave(n, 60, 0.25, u, v);
  double s = 0;
  for (int i = 0; i < n; i++)
    s += u[i] * (i % 7);
  printf("%.6f\n", s);
}
