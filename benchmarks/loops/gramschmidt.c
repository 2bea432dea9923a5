/* Orthonormal columns and the triangle that they leave, by the modified method of Gram and Schmidt. */
#ifndef REAL
#define REAL double
#endif
#include <math.h>

void kernel(int m, int n, REAL A[m][n], REAL R[n][n], REAL Q[m][n])
{
#pragma scop
  REAL square;
  for (int c = 0; c < n; c++) {
    square = 0;
    for (int r = 0; r < m; r++)
      square += A[r][c] * A[r][c];
    R[c][c] = sqrt(square);
    for (int r = 0; r < m; r++)
      Q[r][c] = A[r][c] / R[c][c];
    for (int b = c + 1; b < n; b++) {
      R[c][b] = 0;
      for (int r = 0; r < m; r++)
        R[c][b] += Q[r][c] * A[r][b];
      for (int r = 0; r < m; r++)
        A[r][b] -= Q[r][c] * R[c][b];
    }
  }
#pragma endscop
}
