/* Integers that are squared again and again: products of unsigned numbers inside, which gcc 12 takes for factors. */
#include <stdio.h>
static void apart(int n, int *a, long *b, short *c, unsigned char *d) {
  for (int i = 0; i < n; i++) { a[0] = a[0] * a[0]; b[0] = b[0] * b[0] * b[0]; c[0] = c[0] * c[0]; d[0] = d[0] * d[0]; }
}
static int through_another(int n, int x) {
  int y = 0;
  for (int i = 0; i < n; i++) { y = x * x; x = y * 3; }
  return x + y;
}
static void elements(int n, long a[2]) {
  for (int i = 1; i < n; i += 2)
    for (int j = -3; j < 1; j++)
      if ((2 - j) % 3 >= 1) a[-j / 2] *= a[-j / 2];
      else a[0] *= a[0];
}
int main(void) {
  int a[1] = {5};
  long b[1] = {7}, e[2] = {5, 3};
  short c[1] = {11};
  unsigned char d[1] = {13};
  apart(37, a, b, c, d);
  elements(22, e);
  printf("%d %ld %d %d %d %ld %ld\n", a[0], b[0], c[0], d[0], through_another(41, 7), e[0], e[1]);
  return 0;
}
