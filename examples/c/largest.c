/* The largest element and where it stands: two results that are found together. */
#include <stdio.h>

int largest(int n, const int x[n], int *where)
{
  int best = x[0], place = 0;
#pragma scop
  for (int i = 1; i < n; i++)
    if (x[i] > best) {
      best = x[i];
      place = i;
    }
#pragma endscop
  *where = place;
  return best;
}

int main(void)
{
  enum { N = 54321 };
  static int x[N];
  for (int i = 0; i < N; i++)
    x[i] = (int)((i * 7919L) % 10007);
  int where, best = largest(N, x, &where);
  printf("largest: %d at %d\n", best, where);
  return 0;
}
