/* Arrays that lie in one another, of which different parts are touched. */
#include <stdio.h>

static float a[64], b[64];
static int table[8][20];
static long shared[4096 + 77];

static void halves(float *restrict p) {
#pragma scop
  for (int i = 0; i < 32; i++)
    b[i] = p[i] + a[i];
#pragma endscop
}

static void same_pointer(int n, long *p, long *q) {
#pragma scop
  for (int i = 0; i < n; i++) {
    p[i] = 3 * q[i + n];
    q[i + 2 * n] += p[i];
  }
#pragma endscop
}

static void rows(int first, int last, int to[8][20], int from[8][20]) {
#pragma scop
  for (int i = first; i < last; i++)
    for (int j = 0; j < 20; j++)
      to[i][j] = from[i - first][19 - j] + j;
#pragma endscop
}

static void within(int n, long *p) {
#pragma scop
  for (int i = 0; i < n / 2; i++)
    p[i] = p[i + n / 2] * 2;
#pragma endscop
}

static void nothing(int n, long *p, long *q) {
#pragma scop
  for (int i = 0; i < n; i++)
    p[i] = q[i];
#pragma endscop
}

int main(void) {
  for (int i = 0; i < 64; i++)
    a[i] = i, b[i] = 2 * i;
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 20; j++)
      table[i][j] = 20 * i + j;
  for (int i = 0; i < 4096 + 77; i++)
    shared[i] = i;
  halves(b + 32);
  same_pointer(1000, shared, shared);
  same_pointer(7, shared + 3, shared + 3);
  rows(4, 8, table, table);
  within(4000, shared);
  within(9, shared + 5);
  nothing(0, shared, shared);
  nothing(0, NULL, NULL);
  float sum = 0;
  long total = 0, weighted = 0;
  for (int i = 0; i < 64; i++)
    sum += (i + 1) * (a[i] + b[i]);
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 20; j++)
      total += (i + 3 * j) * table[i][j];
  for (int i = 0; i < 4096 + 77; i++)
    weighted += (i % 101) * shared[i];
  printf("%g %ld %ld\n", sum, total, weighted);
  return 0;
}
