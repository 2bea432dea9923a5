/* Enumerations without negative members are unsigned, as GCC and Clang have them; members that `int` holds are `int`. */
#include <stdio.h>
#pragma GCC diagnostic ignored "-Wtype-limits" /* that differences are never below 0 is what is tested */
enum color { RED, GREEN, BLUE, LAST = BLUE + 40 };
typedef enum { BELOW = -1, HERE } place;
enum wide { TOP = 0x80000000u, NEXT };
enum huge { MOST = 1L << 40, LESS = 3 };
struct pixel { enum { SMALL, LARGE = 7 } size; enum color color; };
static void less(int n, const enum color *a, double *b) {
  for (int i = 0; i < n; i++) b[i] = (a[i] - BLUE < 0 ? 1 : 2) + (RED - BLUE) + a[i] % LAST;
}
static void signed_ones(int n, const place *a, double *b) {
  for (int i = 0; i < n; i++) b[i] = a[i] < HERE ? a[i] - 1 : BELOW;
}
static void large(int n, const int *a, double *b, const enum huge *c) {
  for (int i = 0; i < n; i++) b[i] = (double)(a[i] + TOP) + (NEXT - TOP) / 2 + c[i] / LESS - MOST;
}
static void members(int n, const struct pixel *p, double *b) {
  for (int i = 0; i < n; i++) b[i] = (double)(p[i].size - LARGE) + (p[i].color == GREEN);
}
static int counted(enum color from, double *b) {
  int k = 0;
  for (enum color c = from; c < LAST; c++) { b[c] = k; k += c - BLUE < 3; }
  return k;
}
int main(void) {
  enum { N = 100 };
  enum color a[N];
  place p[N];
  int k[N];
  enum huge h[N];
  struct pixel x[N];
  double b[N];
  for (int i = 0; i < N; i++) a[i] = i % 3, p[i] = i % 2 - 1, k[i] = i - 50, h[i] = i + 5;
  for (int i = 0; i < N; i++) x[i].size = i % 9, x[i].color = a[i];
  double all = 0;
#define ADD(call) call; for (int i = 0; i < N; i++) all += (i + 1) * b[i]; printf("%.17g\n", all)
  ADD(less(N, a, b));
  ADD(signed_ones(N, p, b));
  ADD(large(N, k, b, h));
  ADD(members(N, x, b));
  ADD(k[0] = counted(GREEN, b));
  printf("%d\n", k[0]);
  return 0;
}
