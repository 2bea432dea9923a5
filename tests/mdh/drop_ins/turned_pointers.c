/* Two arrays whose pointers a structure holds take turns: the copy of a pointer stays what it was. */
#include <stdio.h>
typedef struct { float *x; float *y; } S;
static void step(S *s, int n) {
  float *x = s->x;
  s->x = s->y;
  s->y = x;
#pragma scop
  for (int i = 0; i < n; i++) x[i] = x[i] + 1 + i + s->x[i];
#pragma endscop
}
int main(void) {
  static float a[100], b[100];
  S s = {a, b};
  step(&s, 100); step(&s, 100); step(&s, 100);
  printf("%g %g\n", a[7], b[7]);
  return 0;
}
