/* Names that hide others, and integers and pointers that memory holds and the SCoPs leave as they are. */
#include <stdio.h>

struct part {
  int n;
  double *d;
  struct { int k; double y[4]; } in;
};

int mod = 3, n = 99;
double x[10], z[12];

static void f(int n, struct part *p, int *q, int m, double A[n][m])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      A[i][j] = A[i][j] + x[j] + mod;
  for (int i = 0; i < p->n; i++)
    p->d[i] = p->d[i] * 2 + p->in.k;
  for (int i = 0; i < q[1] - *q; i++)
    p->in.y[i] = i + q[1] + p->in.k;
#pragma endscop
}

static void g(int *p)
{
  int x = *p;
#pragma scop
  for (int i = 0; i < 10; i++)
    if (x > 0)
      z[i] = z[i] + i;
#pragma endscop
}

int main(void)
{
  double A[2][10] = {{1}}, d[5] = {1, 2, 3, 4, 5};
  int q[3] = {1, 4, 7}, w = 4;
  struct part s = {5, d, {7, {0}}};
  for (int i = 0; i < 10; i++)
    x[i] = i * i;
  f(2, &s, q, 10, A);
  g(&w);
  for (int i = 0; i < 10; i++)
    printf("%g %g %g\n", A[0][i], A[1][i], z[i]);
  for (int i = 0; i < 5; i++)
    printf("%g\n", d[i]);
  for (int i = 0; i < 4; i++)
    printf("%g\n", s.in.y[i]);
  return n != 99;
}
