/* The sum of two products of a matrix with one vector. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, REAL alpha, REAL beta, REAL A[n][n], REAL B[n][n], REAL x[n], REAL y[n], REAL t[n])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    t[r] = 0;
    y[r] = 0;
    for (int c = 0; c < n; c++) {
      t[r] += A[r][c] * x[c];
      y[r] += B[r][c] * x[c];
    }
    y[r] = alpha * t[r] + beta * y[r];
  }
#pragma endscop
}
