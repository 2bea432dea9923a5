/* The same kernels for sizes that are known only when the program runs: none, one, primes, more than a tile. */
#include <stdio.h>

#define MOST 70

void product(int n, int m, int k, int C[n][m], int A[n][k], int B[k][m]) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] = 1;
      for (int l = 0; l < k; l++)
        C[i][j] += A[i][l] * B[l][j];
    }
#pragma endscop
}

void sums(int n, long x[n], long y[n], long *all, long *most) {
  long total = 0, largest = -1000000;
#pragma scop
  for (int i = 0; i < n; i++) {
    total += x[i];
    y[i] = total;
    largest = x[i] > largest ? x[i] : largest;
  }
#pragma endscop
  *all = total;
  *most = largest;
}

void smooth(int n, int m, double x[n][m], double y[n][m]) {
#pragma scop
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < m - 1; j++)
      y[i][j] = x[i - 1][j] + x[i + 1][j] + x[i][j - 1] + x[i][j + 1] - 4 * x[i][j];
#pragma endscop
}

int main(void) {
  static const int sizes[] = {1, 2, 3, 7, 16, 17, 31, 64, 67};
  static int A[MOST * MOST], B[MOST * MOST], C[MOST * MOST];
  static long x[MOST * MOST], y[MOST * MOST];
  static double u[MOST * MOST], v[MOST * MOST];
  unsigned long h = 0;
  for (int s = 0; s < 9; s++) {
    int n = sizes[s], m = sizes[(s * 4 + 3) % 9], k = sizes[(s * 7 + 1) % 9];
    for (int i = 0; i < MOST * MOST; i++) {
      A[i] = i * 7 % 13 - 6;
      B[i] = i * 5 % 11 - 5;
      x[i] = (i * 37L + s) % 101 - 50;
      u[i] = i * 3 % 17;
      C[i] = 0, y[i] = 0, v[i] = 0;
    }
    long all = 0, most = 0;
    product(n, m, k, (int(*)[m])C, (int(*)[k])A, (int(*)[m])B);
    sums(n * m, x, y, &all, &most);
    smooth(n, m, (double(*)[m])u, (double(*)[m])v);
    for (int i = 0; i < MOST * MOST; i++)
      h = h * 31 + (unsigned long)(C[i] + y[i] + (long)v[i]);
    printf("%d %d %d: %ld %ld %lu\n", n, m, k, all, most, h);
  }
  return 0;
}
