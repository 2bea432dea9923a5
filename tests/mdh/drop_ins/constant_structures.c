/* Structures that are const hold pointers to what is not: only what they point to is written. */
#include <stdio.h>
typedef struct { int n; const float *x; float *y; float w[3]; } Layer;
static void forward(const Layer l, const Layer *before, float a) {
  for (int i = 0; i < l.n; i++) l.y[i] = a * l.x[i] + before->y[i] * l.w[1];
  for (int i = 0; i < l.n; i++) before->y[i] += 1;
}
int main(void) {
  static float x[100], y[100], z[100];
  for (int i = 0; i < 100; i++) { x[i] = i; z[i] = 3 * i; }
  Layer l = {100, x, y, {1, 2, 3}}, before = {100, x, z, {0}};
  forward(l, &before, 0.5f);
  forward(l, &before, 0.25f);
  printf("%g %g %g\n", y[7], y[99], z[42]);
  return 0;
}
