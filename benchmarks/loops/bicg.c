/* A matrix and its transpose times a vector each, in one sweep over the matrix. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, int m, REAL A[n][m], REAL s[m], REAL q[n], REAL p[m], REAL r[n])
{
#pragma scop
  for (int c = 0; c < m; c++)
    s[c] = 0;
  for (int i = 0; i < n; i++) {
    q[i] = 0;
    for (int c = 0; c < m; c++) {
      s[c] += r[i] * A[i][c];
      q[i] += A[i][c] * p[c];
    }
  }
#pragma endscop
}
