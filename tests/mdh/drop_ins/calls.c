/* A part that is called again and again, and one in an else branch. */
#include <stdio.h>
#define N 64
static long a[N], b[N];
static int steps;
static void smooth(int shift) {
#pragma scop
  for (int i = 1; i < N - 1; i++)
    b[i] = (a[i - 1] + 2 * a[i] + a[i + 1]) / 4 + shift;
  for (int i = 0; i < N; i++)
    a[i] = b[i];
#pragma endscop
  steps++;
}
int main(void) {
  for (int i = 0; i < N; i++)
    a[i] = b[i] = i * i % 37 * 1000;
  for (int t = 0; t < 10; t++)
    if (t % 3 == 0)
      smooth(t);
    else {
#pragma scop
      for (int i = 0; i < N; i++)
        a[i] += t * i;
#pragma endscop
    }
  long h = 0;
  for (int i = 0; i < N; i++)
    h = h * 31 % 1000003 + a[i];
  printf("%ld %d\n", h, steps);
}
