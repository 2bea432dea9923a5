/* A matrix product on arrays without a shape. */
#include <stdio.h>
#include <stdlib.h>
void mm(int n, int m, int p, const int *A, const int *B, int *C) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < p; j++) {
      int s = 0;
      for (int k = 0; k < m; k++)
        s += A[i * m + k] * B[k * p + j];
      C[i * p + j] = s;
    }
#pragma endscop
}
int main(void) {
  int n = 17, m = 23, p = 19;
  int *A = malloc(4 * n * m), *B = malloc(4 * m * p), *C = malloc(4 * n * p);
  for (int i = 0; i < n * m; i++)
    A[i] = i % 13 - 6;
  for (int i = 0; i < m * p; i++)
    B[i] = i % 7 - 3;
  mm(n, m, p, A, B, C);
  long h = 0;
  for (int i = 0; i < n * p; i++)
    h = h * 31 % 1000003 + C[i];
  printf("%ld\n", h);
}
