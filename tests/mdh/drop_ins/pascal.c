/* Pascal's triangle modulo a prime. */
#include <stdio.h>
#define N 50
int main(void) {
  static unsigned P[N][N];
#pragma scop
  for (int i = 0; i < N; i++) {
    P[i][0] = 1;
    P[i][i] = 1;
    for (int j = 1; j < i; j++)
      P[i][j] = (P[i - 1][j - 1] + P[i - 1][j]) % 1000007u;
  }
#pragma endscop
  unsigned long h = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j <= i; j++)
      h = h * 31 + P[i][j];
  printf("%lu\n", h);
}
