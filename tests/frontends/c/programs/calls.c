// n=7 m=5 v[40]
/* Functions of the file, inlined. */
#include <math.h>
static inline double square(double x) { return x * x; }
static int above(int i, int by) { return i + by; }
static inline double clamp(double x, double low, double high)
{
  if (x < low)
    x = low;
  double r = x > high ? high : x;
  return r;
}
static void axpy(int n, double alpha, const double *x, double *y)
{
  for (int i = 0; i < n; i++)
    y[i] += alpha * x[i];
}
static double get(int n, double a[n], int i) { return a[above(i, 0)]; }
static void swap(double *a, double *b)
{
  double t = *a;
  *a = *b;
  *b = t;
}
static int sign(int i)
{
  if (i < 3)
    return -1;
  return 1;
}
void calls(int n, int m, double A[n][m], double x[m], double *v)
{
#pragma scop
  for (int i = 0; i < n; i++) {
    axpy(m, square(2.0) + i, x, A[i]);
    axpy(m - 2, 0.5, &A[i][1], v + i);
    v[above(i, 8)] = clamp(get(m, A[i], 2), -1, sign(i) * 3.0);
    swap(&A[i][0], &A[i][m - 1]);
    *(v + 20 + i) = square(A[i][1]) - *v;
  }
#pragma endscop
}
