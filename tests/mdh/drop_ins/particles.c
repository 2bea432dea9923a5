/* Structures with an array inside, and a pointer to one structure. */
#include <stdio.h>
struct particle {
  double x[3];
  double mass;
  int kind;
};
struct box {
  int count;
  double energy;
};
double f(int n, struct particle p[n], struct box *b) {
  double total = 0;
#pragma scop
  for (int i = 0; i < n; i++) {
    for (int d = 0; d < 3; d++)
      p[i].x[d] = p[i].x[d] * 2 + p[i].kind;
    total += p[i].mass;
  }
  b->energy = total;
#pragma endscop
  return total;
}
int main(void) {
  static struct particle p[50];
  struct box b = {3, 0};
  for (int i = 0; i < 50; i++) {
    p[i].mass = i;
    p[i].kind = i % 3;
    for (int d = 0; d < 3; d++)
      p[i].x[d] = i + d;
  }
  double t = f(50, p, &b);
  double s = 0;
  for (int i = 0; i < 50; i++)
    for (int d = 0; d < 3; d++)
      s += p[i].x[d] * (d + 1);
  printf("%g %g %d %g\n", t, b.energy, b.count, s);
}
