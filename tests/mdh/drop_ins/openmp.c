/* Threads of the program's own share some loops; each of them runs others. */
#include <stdio.h>
#define N 2000

static double x[N], y[N];

static void shared(int n, double f)
{
#pragma omp parallel
  {
    if (f < 0) puts("never");
#pragma omp for
    for (int i = 0; i < n; i++) x[i] = x[i] * f + 1;
#pragma omp single
    for (int i = 0; i < n; i++) y[i] += x[n - 1 - i];
    double own[64], sum = 0;
    for (int i = 0; i < 64; i++) own[i] = i % 5 * f;
    for (int i = 0; i < 64; i++) sum += own[i];
#pragma omp critical
    if (sum < 0) puts("never");
  }
}

static void counted(int n, int *found)
{
#pragma omp parallel for
  for (int i = 0; i < n; i++)
#pragma omp atomic
    found[i % 7] += 1;
}

int main(void)
{
  int found[7] = {0};
  for (int i = 0; i < N; i++) {
    x[i] = i % 9;
    y[i] = i % 4;
  }
  for (int k = 0; k < 3; k++) shared(N - k, 1.5 + k);
  counted(N, found);
  double sum = 0;
  for (int i = 0; i < N; i++) sum += x[i] * (i % 3) + y[i];
  printf("%.1f %d %d\n", sum, found[0], found[6]);
  return 0;
}
