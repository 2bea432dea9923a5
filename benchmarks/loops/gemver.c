/* A matrix plus two outer products, then two products of the sum with vectors. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, REAL alpha, REAL beta, REAL A[n][n], REAL u1[n], REAL v1[n], REAL u2[n], REAL v2[n], REAL w[n],
            REAL x[n], REAL y[n], REAL z[n])
{
#pragma scop
  for (int r = 0; r < n; r++)
    for (int c = 0; c < n; c++)
      A[r][c] = A[r][c] + u1[r] * v1[c] + u2[r] * v2[c];
  for (int r = 0; r < n; r++)
    for (int c = 0; c < n; c++)
      x[r] += beta * A[c][r] * y[c];
  for (int r = 0; r < n; r++)
    x[r] += z[r];
  for (int r = 0; r < n; r++)
    for (int c = 0; c < n; c++)
      w[r] += alpha * A[r][c] * x[c];
#pragma endscop
}
