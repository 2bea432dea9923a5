/* Subscripts with divisions and strides, break and continue. */
#include <stdio.h>
#define N 50
static int a[N], b[N][4], c[3 * N + 1];
int main(void) {
  for (int i = 0; i < N; i++)
    a[i] = (i * 7) % 23 - 11;
  for (int i = 0; i <= 3 * N; i++)
    c[i] = 0;
#pragma scop
  for (int i = 0; i < N; i++)
    b[(i + 1) % N][i % 4] = a[i] / 3 + a[i] % 3;
  for (int i = 0; i < N; i++)
    c[3 * i + 1] = a[N - 1 - i] >> 1;
  for (int i = 0; i < N / 2; i++)
    c[2 * i] -= a[i + N / 2] * (i < 10 ? -1 : 1);
  for (int i = 0; i < N; i++) {
    if (i >= 30)
      break;
    if (i % 2)
      continue;
    c[i] += 100;
  }
  for (int t = 0; t < 4; t++)
    for (int i = t; i < N; i += 4)
      a[i] = a[i] * t + b[i][t];
#pragma endscop
  long h = 0;
  for (int i = 0; i < N; i++) {
    h = h * 31 % 1000003 + a[i];
    for (int j = 0; j < 4; j++)
      h += b[i][j] * (j + 2);
  }
  for (int i = 0; i <= 3 * N; i++)
    h = h * 31 % 1000003 + c[i];
  printf("%ld\n", h);
}
