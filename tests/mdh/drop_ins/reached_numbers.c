/* Numbers to which pointers lead, too: sizes and factors that the loops change on their way. */
#include <stdio.h>
static int count = 60;
static double factor = 2;
static void up_to_count(int n, int a[n], const int *b) {
  for (int i = 0; i < count; i++) a[i % n] = b[i] + 1;
}
static void by_factor(int n, const double *x, double *total) {
  for (int i = 0; i < n; i++) *total += x[i] * factor;
}
static void through_a_pointer(int n, const int a[100], double b[100]) {
  int *p = &n;
  for (int i = 0; i < n; i++) {
    b[i] = a[i];
    if (i == 3) *p = 5;
  }
}
static void of_the_function(int n, const double *x, double *y) {
  double scale = 3, *to = n > 50 ? &scale : y;
  for (int i = 0; i < n; i++) to[0] += x[i] * scale;
  y[1] = scale;
}
int main(void) {
  int a[100] = {1, 2, 3}, b[100];
  double x[100], y[100] = {0}, total = 1;
  for (int i = 0; i < 100; i++) b[i] = 30 + i % 3, x[i] = i % 2;
  up_to_count(7, a, b);
  printf("%d %d\n", a[0], a[6]);
  up_to_count(1, &count, b);
  printf("%d\n", count);
  by_factor(9, x, &total);
  printf("%g\n", total);
  by_factor(9, x, &factor);
  printf("%g\n", factor);
  through_a_pointer(99, b, y);
  printf("%g %g\n", y[4], y[5]);
  of_the_function(10, x, y);
  printf("%g %g\n", y[0], y[1]);
  of_the_function(60, x, y);
  printf("%g %g\n", y[0], y[1]);
  return 0;
}
