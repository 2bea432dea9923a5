/* Bubble sort: a swap under a condition on data. */
#include <stdio.h>
#define N 60
int main(void) {
  int a[N];
  for (int i = 0; i < N; i++)
    a[i] = (i * 37) % 61;
#pragma scop
  for (int i = 0; i < N - 1; i++)
    for (int j = 0; j < N - 1 - i; j++)
      if (a[j] > a[j + 1]) {
        int t = a[j];
        a[j] = a[j + 1];
        a[j + 1] = t;
      }
#pragma endscop
  for (int i = 0; i < N; i++)
    printf("%d ", a[i]);
  puts("");
}
