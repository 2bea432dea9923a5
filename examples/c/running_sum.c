/* The running sum of a row (a scan), for many rows. */
#include <stdio.h>

#define ROWS 37
#define N 1009

static long x[ROWS][N], y[ROWS][N];

void running_sums(void)
{
#pragma scop
  for (int r = 0; r < ROWS; r++) {
    long sum = 0;
    for (int i = 0; i < N; i++) {
      sum += x[r][i];
      y[r][i] = sum;
    }
  }
#pragma endscop
}

int main(void)
{
  for (int r = 0; r < ROWS; r++)
    for (int i = 0; i < N; i++)
      x[r][i] = (r * 31 + i * 17) % 101 - 50;
  running_sums();
  unsigned long check = 0;
  for (int r = 0; r < ROWS; r++)
    for (int i = 0; i < N; i++)
      check = check * 3 + (unsigned long)y[r][i];
  printf("running sum: %lu\n", check);
  return 0;
}
