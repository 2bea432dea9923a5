/* Four reductions in one loop, one through an inlined function. */
#include <stdio.h>
static inline int sq(int x) {
  return x * x;
}
void stats(int n, int m, int X[n][m], int *lo, int *hi, long *sum, long *sq2) {
#pragma scop
  for (int j = 0; j < m; j++) {
    lo[j] = X[0][j];
    hi[j] = X[0][j];
    sum[j] = 0;
    sq2[j] = 0;
    for (int i = 0; i < n; i++) {
      if (X[i][j] < lo[j])
        lo[j] = X[i][j];
      hi[j] = X[i][j] > hi[j] ? X[i][j] : hi[j];
      sum[j] += X[i][j];
      sq2[j] += sq(X[i][j]);
    }
  }
#pragma endscop
}
int main(void) {
  static int X[77][13];
  int lo[13], hi[13];
  long s[13], q[13];
  for (int i = 0; i < 77; i++)
    for (int j = 0; j < 13; j++)
      X[i][j] = (i * 31 + j * 17) % 97 - 48;
  stats(77, 13, X, lo, hi, s, q);
  for (int j = 0; j < 13; j++)
    printf("%d %d %ld %ld\n", lo[j], hi[j], s[j], q[j]);
}
