/* Standardised columns of a table, and the symmetric matrix of their correlations. */
#ifndef REAL
#define REAL double
#endif
#include <math.h>

void kernel(int n, int m, REAL X[n][m], REAL R[m][m], REAL mean[m], REAL spread[m])
{
#pragma scop
  REAL count = n;
  for (int c = 0; c < m; c++) {
    mean[c] = 0;
    for (int r = 0; r < n; r++)
      mean[c] += X[r][c];
    mean[c] /= count;
  }
  for (int c = 0; c < m; c++) {
    spread[c] = 0;
    for (int r = 0; r < n; r++)
      spread[c] += (X[r][c] - mean[c]) * (X[r][c] - mean[c]);
    spread[c] = sqrt(spread[c] / count);
    spread[c] = spread[c] <= (REAL)0.1 ? 1 : spread[c];
  }
  for (int r = 0; r < n; r++)
    for (int c = 0; c < m; c++) {
      X[r][c] -= mean[c];
      X[r][c] /= sqrt(count) * spread[c];
    }
  for (int a = 0; a < m - 1; a++) {
    R[a][a] = 1;
    for (int b = a + 1; b < m; b++) {
      R[a][b] = 0;
      for (int r = 0; r < n; r++)
        R[a][b] += X[r][a] * X[r][b];
      R[b][a] = R[a][b];
    }
  }
  R[m - 1][m - 1] = 1;
#pragma endscop
}
