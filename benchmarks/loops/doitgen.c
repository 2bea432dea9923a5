/* Each row of a box of numbers times a matrix, in place, through one scratch row. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int m, int k, REAL A[n][m][k], REAL C[k][k], REAL row[k])
{
#pragma scop
  for (int r = 0; r < n; r++)
    for (int q = 0; q < m; q++) {
      for (int p = 0; p < k; p++) {
        row[p] = 0;
        for (int s = 0; s < k; s++)
          row[p] += A[r][q][s] * C[s][p];
      }
      for (int p = 0; p < k; p++)
        A[r][q][p] = row[p];
    }
#pragma endscop
}
