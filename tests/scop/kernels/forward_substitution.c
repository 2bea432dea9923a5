/* A triangular system: each unknown needs all earlier ones. */
void kernel(int n, double L[n][n], double b[n], double x[n])
{
#pragma scop
  for (int r = 0; r < n; r++) {
    x[r] = b[r];
    for (int q = 0; q < r; q++)
      x[r] -= L[r][q] * x[q];
    x[r] = x[r] / L[r][r];
  }
#pragma endscop
}
