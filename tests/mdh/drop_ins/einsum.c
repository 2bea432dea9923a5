/* A contraction over two indices, one of them transposed. */
#include <stdio.h>
#define A 5
#define B 6
#define C 7
#define D 4
static long X[A][C][D], Y[D][B][C], Z[A][B];
int main(void) {
  for (int a = 0; a < A; a++)
    for (int c = 0; c < C; c++)
      for (int d = 0; d < D; d++)
        X[a][c][d] = a - c + 2 * d;
  for (int d = 0; d < D; d++)
    for (int b = 0; b < B; b++)
      for (int c = 0; c < C; c++)
        Y[d][b][c] = d * b - c;
#pragma scop
  for (int a = 0; a < A; a++)
    for (int b = 0; b < B; b++) {
      long s = 0;
      for (int c = 0; c < C; c++)
        for (int d = 0; d < D; d++)
          s += X[a][c][d] * Y[d][b][c];
      Z[a][b] = s;
    }
#pragma endscop
  for (int a = 0; a < A; a++)
    for (int b = 0; b < B; b++)
      printf("%ld ", Z[a][b]);
  puts("");
}
