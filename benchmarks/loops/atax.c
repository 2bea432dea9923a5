/* A matrix times a vector, and its transpose times that: y = A' (A x). */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int m, REAL A[n][m], REAL x[m], REAL y[m], REAL t[n])
{
#pragma scop
  for (int c = 0; c < m; c++)
    y[c] = 0;
  for (int r = 0; r < n; r++) {
    t[r] = 0;
    for (int c = 0; c < m; c++)
      t[r] += A[r][c] * x[c];
    for (int c = 0; c < m; c++)
      y[c] += A[r][c] * t[r];
  }
#pragma endscop
}
