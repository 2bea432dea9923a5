/* Loops of every kind: descending, with steps, triangular, a transposition in place. */
#include <stdio.h>
#define N 40
static int a[N][N], b[2 * N], t[N];
int main(void) {
#pragma scop
  for (int i = N - 1; i >= 0; i--)
    for (int j = i; j < N; j += 3)
      a[i][j] = i * 100 + j;
  for (int i = 0; i <= 2 * N - 1; ++i)
    b[i] = 0;
  for (int i = 0; i < N; i += 2)
    for (int j = 0; j < N; j++)
      b[i + j] += a[i][j] * (j % 2 == 0 ? 1 : -1);
  for (int j = 1; j < N; j++) {
    t[j] = 0;
    for (int i = 0; i < j; i++)
      t[j] += a[i][j];
  }
  for (int i = 1; i < N; i++)
    for (int j = 0; j < i; j++) {
      int x = a[i][j];
      a[i][j] = a[j][i];
      a[j][i] = x;
    }
#pragma endscop
  long h = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      h = (h * 31 + a[i][j]) % 1000003;
  for (int i = 0; i < 2 * N; i++)
    h = (h * 31 + b[i] + 1000000) % 1000003;
  for (int i = 1; i < N; i++)
    h = (h * 31 + t[i]) % 1000003;
  printf("%ld\n", h);
}
