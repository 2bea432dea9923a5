/* A solver with sparse rows: loops that are taken among loops that stay as they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { int n; int *row, *col; double *val; } csr;
void spmv(const csr *m, const double *x, double *y) {
  for (int i = 0; i < m->n; i++) {
    double s = 0;
    for (int p = m->row[i]; p < m->row[i + 1]; p++) s += m->val[p] * x[m->col[p]];
    y[i] = s;
  }
}
double dot(int n, const double *a, const double *b) {
  double s = 0;
  for (int i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}
void axpy(int n, double a, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] += a * x[i];
}
int cg(const csr *m, const double *b, double *x, int iters) {
  int n = m->n, k = 0;
  double *r = malloc((size_t)n * sizeof(double)), *p = malloc((size_t)n * sizeof(double)), *q = malloc((size_t)n * sizeof(double));
  memset(x, 0, (size_t)n * sizeof(double));
  for (int i = 0; i < n; i++) { r[i] = b[i]; p[i] = b[i]; }
  double rr = dot(n, r, r);
  while (rr > 1e-12 && k < iters) {
    spmv(m, p, q);
    double a = rr / dot(n, p, q);
    axpy(n, a, p, x);
    axpy(n, -a, q, r);
    double r2 = dot(n, r, r), beta = r2 / rr;
    for (int i = 0; i < n; i++) p[i] = r[i] + beta * p[i];
    rr = r2;
    k++;
  }
  free(r); free(p); free(q);
  return k;
}
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  csr m = { n, malloc(((size_t)n + 1) * sizeof(int)), malloc((size_t)3 * n * sizeof(int)), malloc((size_t)3 * n * sizeof(double)) };
  int nz = 0;
  for (int i = 0; i < n; i++) {
    m.row[i] = nz;
    for (int d = -1; d <= 1; d++) if (i + d >= 0 && i + d < n) { m.col[nz] = i + d; m.val[nz++] = d ? -1 : 2.5; }
  }
  m.row[n] = nz;
  double *b = calloc((size_t)n, 8), *x = calloc((size_t)n, 8);
  for (int i = 0; i < n; i++) b[i] = i % 7 - 3;
  int k = cg(&m, b, x, 500);
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * (i % 5);
  printf("%d %.5g\n", k, s);
  return 0;
}
