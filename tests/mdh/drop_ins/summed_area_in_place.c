/* A summed-area table, one condition for each neighbour. */
#include <stdio.h>
#define N 41
static long S[N][N];
static int x[N][N];
int main(void) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      x[i][j] = (i * j + i) % 13 - 6;
#pragma scop
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      S[i][j] = x[i][j];
      if (i > 0)
        S[i][j] += S[i - 1][j];
      if (j > 0)
        S[i][j] += S[i][j - 1];
      if (i > 0 && j > 0)
        S[i][j] -= S[i - 1][j - 1];
    }
#pragma endscop
  long h = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      h = h * 31 % 1000003 + S[i][j];
  printf("%ld\n", h);
}
