/* The longest common subsequence of two texts. */
#include <stdio.h>
#include <string.h>
#define MAX(a, b) ((a) > (b) ? (a) : (b))
static int L[101][121];
int lcs(int n, int m, const char *s, const char *t) {
#pragma scop
  for (int i = 0; i <= n; i++)
    L[i][0] = 0;
  for (int j = 0; j <= m; j++)
    L[0][j] = 0;
  for (int i = 1; i <= n; i++)
    for (int j = 1; j <= m; j++) {
      if (s[i - 1] == t[j - 1])
        L[i][j] = L[i - 1][j - 1] + 1;
      else
        L[i][j] = MAX(L[i - 1][j], L[i][j - 1]);
    }
#pragma endscop
  return L[n][m];
}
int main(void) {
  char s[101], t[121];
  for (int i = 0; i < 100; i++)
    s[i] = 'a' + (i * i + 3 * i) % 7;
  for (int j = 0; j < 120; j++)
    t[j] = 'a' + (j * 5 + j / 3) % 7;
  printf("%d\n", lcs(100, 120, s, t));
  long h = 0;
  for (int i = 0; i <= 100; i++)
    for (int j = 0; j <= 120; j++)
      h = (h * 31 + L[i][j]) % 1000003;
  printf("%ld\n", h);
}
