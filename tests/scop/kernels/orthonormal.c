/* Columns made orthonormal, one after another. */
#include <math.h>
void kernel(int n, int m, double V[n][m], double Q[n][m], double R[m][m])
{
#pragma scop
  for (int c = 0; c < m; c++) {
    double length = 0.0;
    for (int i = 0; i < n; i++)
      length += V[i][c] * V[i][c];
    R[c][c] = sqrt(length);
    for (int i = 0; i < n; i++)
      Q[i][c] = V[i][c] / R[c][c];
    for (int d = c + 1; d < m; d++) {
      R[c][d] = 0.0;
      for (int i = 0; i < n; i++)
        R[c][d] += Q[i][c] * V[i][d];
      for (int i = 0; i < n; i++)
        V[i][d] -= Q[i][c] * R[c][d];
    }
  }
#pragma endscop
}
