/* Structures that overlap, or are seen as numbers; members beside a bit-field are copied side by side. */
#include <stdio.h>
typedef struct { float r, i; } cpx;
static cpx z[400], w[400];
static void shifted(cpx *y, const cpx *x, int n) {
  for (int k = 0; k < n; k++) { y[k].r = x[k].r + 1; y[k].i = x[k].i - 2; }
}
static void turned(cpx *y, const cpx *x, int n, int m) {
  for (int k = 0; k < n; k++)
    for (int l = 0; l < m; l++) { y[l * n + k].r = x[k * m + l].i; y[l * n + k].i = x[k * m + l].r + 1; }
}
static void taken(float *y, const cpx *x, int n) {
  for (int k = 0; k < n; k++) y[k] = x[k].r + x[k].i;
}
static void given(cpx *y, const float *x, int n) {
  for (int k = 0; k < n; k++) y[k].r = x[k];
}
typedef struct { float r, i; unsigned odd : 1; } flagged;
static flagged v[400];
static void copied(flagged *y, const flagged *x, int n) {
  for (int k = 0; k < n; k++) { y[k].r = x[k].r + 1; y[k].i = x[k].i - 2; }
}
static void copied_turned(flagged *y, const flagged *x, int n, int m) {
  for (int k = 0; k < n; k++)
    for (int l = 0; l < m; l++) { y[l * n + k].r = x[k * m + l].i; y[l * n + k].i = x[k * m + l].r + 1; }
}
static void fill(void) {
  for (int k = 0; k < 400; k++) { v[k].r = k % 8; v[k].i = k % 9; v[k].odd = k & 1; }
  for (int k = 0; k < 400; k++) { z[k].r = k % 7; z[k].i = k % 5; }
  for (int k = 0; k < 400; k++) { w[k].r = k % 3; w[k].i = k % 4; }
}
static float left(void) {
  float sum = 0;
  for (int k = 0; k < 400; k++) sum += (k % 11) * (z[k].r + 2 * z[k].i + 3 * w[k].r + w[k].i + v[k].r + 5 * v[k].i + v[k].odd);
  return sum;
}
int main(void) {
  const int steps[] = {0, 1, 2, 50, 100, 101};
  for (int k = 0; k < 6; k++) { fill(); shifted(z + steps[k], z, 100); printf("%g ", left()); }
  for (int k = 0; k < 6; k++) { fill(); shifted(z, z + steps[k], 100); printf("%g ", left()); }
  fill(); shifted(z, w, 400); printf("%g ", left());
  for (int k = 0; k < 6; k++) { fill(); turned(z + steps[k], z, 9, 11); printf("%g ", left()); }
  fill(); turned(w, z, 19, 21); printf("%g ", left());
  for (int k = 0; k < 6; k++) { fill(); taken(&z[steps[k]].r, z, 90); printf("%g ", left()); }
  for (int k = 0; k < 6; k++) { fill(); given(z, &z[steps[k]].i, 90); printf("%g ", left()); }
  for (int k = 0; k < 6; k++) { fill(); copied(v + steps[k], v, 100); printf("%g ", left()); }
  for (int k = 0; k < 6; k++) { fill(); copied(v, v + steps[k], 100); printf("%g ", left()); }
  for (int k = 0; k < 6; k++) { fill(); copied_turned(v + steps[k], v, 9, 11); printf("%g ", left()); }
  fill(); taken(&w[0].r, z, 400); printf("%g ", left());
  fill(); given(w, &z[0].r, 400); printf("%g\n", left());
  return 0;
}
