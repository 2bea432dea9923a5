/* Loops over size_t and unsigned, truth values, a pointer to rows. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
void f(size_t n, unsigned m, double (*A)[10], int x[], const bool on[], unsigned char *restrict out) {
#pragma scop
  for (size_t i = 0; i < n; i++)
    for (unsigned j = 0; j < 10u; j++)
      A[i][j] = A[i][j] * 0.5 + x[i] * (on[j] ? 1.0 : -1.0);
  for (unsigned k = m; k > 0; k--)
    out[k - 1] = (unsigned char)(k * k + x[k - 1]);
  for (int i = 0; i != (int)m; ++i)
    if (!(on[i % 10] && x[i] > 3) || x[i] == 0)
      out[i] ^= 0x5A;
#pragma endscop
}
int main(void) {
  double A[20][10];
  int x[20];
  bool on[10];
  unsigned char out[20];
  for (int i = 0; i < 20; i++) {
    x[i] = i - 5;
    for (int j = 0; j < 10; j++)
      A[i][j] = i * j;
  }
  for (int j = 0; j < 10; j++)
    on[j] = j % 3 == 0;
  f(20, 20, A, x, on, out);
  double s = 0;
  for (int i = 0; i < 20; i++) {
    s += out[i];
    for (int j = 0; j < 10; j++)
      s += A[i][j] * (j + 1);
  }
  printf("%g\n", s);
}
