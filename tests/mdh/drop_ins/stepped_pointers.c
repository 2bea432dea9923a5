/* Pointers that loops move: what is read behind the loops begins where they left them. */
#include <stdio.h>
typedef struct { float re, im; } number;
static float pool[3000];
static number numbers[200];

static float *scaled(float *d, const float *s, int n) {
  for (int i = 0; i < n; i++) *d++ = *s++ * 2;
  return d;
}

static const float *rows(float *o, const float *w, int n, int m) {
  int k;
  for (k = 0; k < n; k++, o++) {
    float sum = *w++ * -1;
    for (int j = 0; j < 20; j++) sum += *w++ * pool[j];
    *o = sum / 64;
  }
  *o = 5;
  return m < 0 ? 0 : w;
}

static void turned(number *a, const number *t, int n) {
  for (int i = 0; i < n; i++) {
    float re = a->re * t->re - a->im * t->im;
    a->im = a->re * t->im + a->im * t->re;
    a++->re = re;
    t += 2;
  }
  a->re = 9;
}

int main(void) {
  for (int i = 0; i < 3000; i++) pool[i] = (i * 7 % 23) - 11;
  for (int i = 0; i < 200; i++) numbers[i] = (number){i % 5, i % 3 - 1};
  printf("%ld\n", (long)(scaled(pool + 1000, pool, 500) - pool));
  printf("%ld\n", (long)(scaled(pool + 90, pool, 100) - pool));
  printf("%ld\n", (long)(scaled(pool, pool, 0) - pool));
  printf("%ld\n", (long)(rows(pool + 2000, pool + 100, 30, 1) - pool));
  turned(numbers, numbers + 80, 60);
  double sum = 0;
  for (int i = 0; i < 3000; i++) sum += pool[i] * (i % 13);
  for (int i = 0; i < 200; i++) sum += numbers[i].re * i + numbers[i].im;
  printf("%.6g %g %g\n", sum, pool[2030], numbers[60].re);
  return 0;
}
