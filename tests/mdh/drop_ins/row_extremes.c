/* The largest element of each row right of the diagonal, with its place, and the smallest one left of it. */
#include <stdio.h>
#define N 45
static float A[N][N];
static float mx[N], mn[N];
static int where[N];
int main(void) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      A[i][j] = (float)((i * 31 + j * 17) % 101) - 50;
#pragma scop
  for (int i = 0; i < N; i++) {
    mx[i] = A[i][i];
    mn[i] = A[i][0];
    where[i] = i;
    for (int j = i + 1; j < N; j++)
      if (A[i][j] > mx[i]) {
        mx[i] = A[i][j];
        where[i] = j;
      }
    for (int j = 1; j <= i; j++)
      mn[i] = A[i][j] < mn[i] ? A[i][j] : mn[i];
  }
#pragma endscop
  double s = 0;
  for (int i = 0; i < N; i++)
    s += mx[i] * (i + 1) + mn[i] * 3 + where[i];
  printf("%g\n", s);
}
