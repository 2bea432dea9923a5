/* Gaussian elimination and back substitution. */
#include <stdio.h>
#define N 20
static double A[N][N + 1], x[N];
int main(void) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < N; j++)
      A[i][j] = (i == j ? 64 : 0) + ((i * 3 + j * 5) % 7);
    A[i][N] = i;
  }
#pragma scop
  for (int k = 0; k < N; k++)
    for (int i = k + 1; i < N; i++) {
      double f = A[i][k] / A[k][k];
      for (int j = k; j <= N; j++)
        A[i][j] -= f * A[k][j];
    }
  for (int i = N - 1; i >= 0; i--) {
    x[i] = A[i][N];
    for (int j = i + 1; j < N; j++)
      x[i] -= A[i][j] * x[j];
    x[i] /= A[i][i];
  }
#pragma endscop
  double s = 0;
  for (int i = 0; i < N; i++)
    s += x[i] * (i + 1);
  printf("%.8f\n", s);
}
