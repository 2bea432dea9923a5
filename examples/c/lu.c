/* A = L U in place: triangular loops whose outermost runs on the host. */
#include <stdio.h>

void lu(int n, double A[n][n])
{
#pragma scop
  for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++)
      A[i][k] /= A[k][k];
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++)
        A[i][j] -= A[i][k] * A[k][j];
  }
#pragma endscop
}

int main(void)
{
  enum { n = 61 };
  static double A[n][n];
  for (int i = 0; i < n; i++) /* the product of the L and U whose entries are 1, on and below, on and above */
    for (int j = 0; j < n; j++)
      A[i][j] = 1 + (i < j ? i : j);
  lu(n, A);
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      sum += (i + 2 * j) * A[i][j];
  printf("lu: %.0f\n", sum);
  return 0;
}
