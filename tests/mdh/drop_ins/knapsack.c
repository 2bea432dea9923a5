/* A knapsack: subscripts that read data, under a condition that keeps them inside. */
#include <stdio.h>
#define ITEMS 30
#define CAP 200
static int best[ITEMS + 1][CAP + 1];
int main(void) {
  int w[ITEMS], v[ITEMS];
  for (int i = 0; i < ITEMS; i++) {
    w[i] = 3 + (i * 7) % 19;
    v[i] = 1 + (i * 13) % 29;
  }
#pragma scop
  for (int c = 0; c <= CAP; c++)
    best[0][c] = 0;
  for (int i = 1; i <= ITEMS; i++)
    for (int c = 0; c <= CAP; c++) {
      best[i][c] = best[i - 1][c];
      if (c >= w[i - 1] && best[i - 1][c - w[i - 1]] + v[i - 1] > best[i][c])
        best[i][c] = best[i - 1][c - w[i - 1]] + v[i - 1];
    }
#pragma endscop
  printf("%d\n", best[ITEMS][CAP]);
  long h = 0;
  for (int i = 0; i <= ITEMS; i++)
    for (int j = 0; j <= CAP; j++)
      h = (h * 31 + best[i][j]) % 1000003;
  printf("%ld\n", h);
}
