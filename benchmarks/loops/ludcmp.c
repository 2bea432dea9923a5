/* A system of equations by L and U: the factors through a scalar, then both substitutions. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, REAL A[n][n], REAL b[n], REAL x[n], REAL y[n])
{
#pragma scop
  REAL w;
  for (int r = 0; r < n; r++) {
    for (int c = 0; c < r; c++) {
      w = A[r][c];
      for (int q = 0; q < c; q++)
        w -= A[r][q] * A[q][c];
      A[r][c] = w / A[c][c];
    }
    for (int c = r; c < n; c++) {
      w = A[r][c];
      for (int q = 0; q < r; q++)
        w -= A[r][q] * A[q][c];
      A[r][c] = w;
    }
  }
  for (int r = 0; r < n; r++) {
    w = b[r];
    for (int c = 0; c < r; c++)
      w -= A[r][c] * y[c];
    y[r] = w;
  }
  for (int r = n - 1; r >= 0; r--) {
    w = y[r];
    for (int c = r + 1; c < n; c++)
      w -= A[r][c] * x[c];
    x[r] = w / A[r][r];
  }
#pragma endscop
}
