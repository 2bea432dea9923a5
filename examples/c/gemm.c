/* C = alpha A B + beta C, sizes known when the program runs. */
#include <stdio.h>

void gemm(int n, int m, int k, float alpha, float beta, float C[n][m], float A[n][k], float B[k][m])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] *= beta;
      for (int l = 0; l < k; l++)
        C[i][j] += alpha * A[i][l] * B[l][j];
    }
#pragma endscop
}

int main(void)
{
  enum { n = 97, m = 100, k = 108 };
  static float C[n][m], A[n][k], B[k][m];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      C[i][j] = (float)((i + j) % 5);
  for (int i = 0; i < n; i++)
    for (int l = 0; l < k; l++)
      A[i][l] = (float)((i * l + 1) % 7);
  for (int l = 0; l < k; l++)
    for (int j = 0; j < m; j++)
      B[l][j] = (float)((l * j + 2) % 6);
  gemm(n, m, k, 2, 3, C, A, B);
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      sum += (1 + (i + 2 * j) % 3) * C[i][j];
  printf("gemm: %.0f\n", sum);
  return 0;
}
