/* A lower triangular system of equations, one unknown after the other. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, REAL L[n][n], REAL x[n], REAL b[n])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    x[r] = b[r];
    for (int c = 0; c < r; c++)
      x[r] -= L[r][c] * x[c];
    x[r] = x[r] / L[r][r];
  }
#pragma endscop
}
