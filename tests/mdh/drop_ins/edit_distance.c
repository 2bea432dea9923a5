/* The edit distance of two texts, with a function of three arguments. */
#include <stdio.h>
enum { N = 37, M = 29 };
typedef int row_t[M + 1];
static row_t D[N + 1];
static int min3(int a, int b, int c) {
  int m = a;
  if (b < m)
    m = b;
  if (c < m)
    m = c;
  return m;
}
int main(void) {
  char s[N], t[M];
  for (int i = 0; i < N; i++)
    s[i] = "abcab"[i % 5];
  for (int j = 0; j < M; j++)
    t[j] = "acbba"[(j * 3) % 5];
#pragma scop
  for (int i = 0; i <= N; i++)
    for (int j = 0; j <= M; j++) {
      if (i == 0)
        D[i][j] = j;
      else if (j == 0)
        D[i][j] = i;
      else
        D[i][j] = min3(D[i - 1][j] + 1, D[i][j - 1] + 1, D[i - 1][j - 1] + (s[i - 1] != t[j - 1]));
    }
#pragma endscop
  printf("%d\n", D[N][M]);
}
