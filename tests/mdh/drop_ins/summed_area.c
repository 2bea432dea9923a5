/* A summed-area table with conditions in subscripts. */
#include <stdio.h>
#define N 41
static long S[N + 1][N + 1];
static int x[N][N];
int main(void) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      x[i][j] = (i * j + i) % 13 - 6;
#pragma scop
  for (int i = 0; i <= N; i++)
    for (int j = 0; j <= N; j++)
      S[i][j] = (i == 0 || j == 0)
                    ? 0
                    : S[i - 1][j] + S[i][j - 1] - S[i - 1][j - 1] + x[i > 0 ? i - 1 : 0][j > 0 ? j - 1 : 0];
#pragma endscop
  long h = 0;
  for (int i = 0; i <= N; i++)
    for (int j = 0; j <= N; j++)
      h = h * 31 % 1000003 + S[i][j];
  printf("%ld\n", h);
}
