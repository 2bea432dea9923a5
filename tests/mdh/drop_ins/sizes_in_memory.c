/* Sizes in memory that loops overwrite: these run as they stand. */
#include <stdio.h>
struct s { int n; int v[20]; };
static int x[100];
static void set(const int *n, int *y) {
  for (int i = 0; i < *n; i++) y[i] = 3;
}
static void moved(struct s *p, int *y) {
  for (int i = 0; i < p->n; i++) y[i] = p->v[i] + 5;
}
static void counted(struct s *p) {
  for (int i = 0; i < p->n; i++) p->v[i] += i;
}
static void halved(const int *n, float *y) {
  for (int i = 0; i < n[1]; i++) y[i] = i * 0.5f;
}
static int left(const struct s *p) {
  int sum = 0;
  for (int i = 0; i < 100; i++) sum += (i + 1) * x[i];
  for (int i = 0; i < 20; i++) sum += (i + 3) * p->v[i];
  return sum + p->n;
}
int main(void) {
  struct s s = {20, {1, 2, 3}}, t = {20, {4, 5, 6}};
  float y[50];
  x[0] = 50; set(x, x); printf("%d ", left(&s));
  x[20] = 30; set(x + 20, x + 10); printf("%d ", left(&s));
  x[20] = 30; set(x + 20, x + 21); printf("%d ", left(&s));
  moved(&s, &s.n); printf("%d ", left(&s));
  moved(&t, x); printf("%d ", left(&t));
  counted(&t); printf("%d ", left(&t));
  x[1] = 50; halved(x, y); printf("%g %d\n", y[49], left(&t));
  return 0;
}
