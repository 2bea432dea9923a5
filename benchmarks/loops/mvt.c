/* A matrix times one vector, and its transpose times another. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, REAL x1[n], REAL x2[n], REAL y1[n], REAL y2[n], REAL A[n][n])
{
#pragma scop
  for (int r = 0; r < n; r++)
    for (int c = 0; c < n; c++)
      x1[r] += A[r][c] * y1[c];
  for (int r = 0; r < n; r++)
    for (int c = 0; c < n; c++)
      x2[r] += A[c][r] * y2[c];
#pragma endscop
}
