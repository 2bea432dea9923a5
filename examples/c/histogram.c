/* How often each value occurs: an addition into an element that the data choose. */
#include <stdio.h>

#define N 100003
#define BINS 64

static unsigned char data[N];

int main(void)
{
  int count[BINS];
  unsigned seed = 1;
  for (int i = 0; i < N; i++) {
    seed = seed * 1103515245u + 12345u;
    data[i] = (unsigned char)((seed >> 16) % BINS);
  }

#pragma scop
  for (int b = 0; b < BINS; b++)
    count[b] = 0;
  for (int i = 0; i < N; i++)
    count[data[i]] += 1;
#pragma endscop

  long sum = 0;
  for (int b = 0; b < BINS; b++)
    sum += (long)(b + 1) * count[b];
  printf("histogram: %ld\n", sum);
  return 0;
}
