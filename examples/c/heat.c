/* Heat on a plate, in whole numbers: a loop over time around two parallel sweeps. */
#include <stdio.h>

#define N 130
#define STEPS 40

static int now[N][N], next[N][N];

int main(void)
{
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      now[i][j] = i == 0 ? 100000 : 0;

#pragma scop
  for (int t = 0; t < STEPS; t++) {
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++)
        next[i][j] = (now[i - 1][j] + now[i + 1][j] + now[i][j - 1] + now[i][j + 1]) / 4;
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++)
        now[i][j] = next[i][j];
  }
#pragma endscop

  long sum = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      sum += (long)(i + 3 * j) * now[i][j];
  printf("heat: %ld\n", sum);
  return 0;
}
