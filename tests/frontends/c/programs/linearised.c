// n=4 m=5 k=3 a[4] b[3] c[4] u[6] v[6] w[20] t[4] y[2]
/* Matrices that C keeps as one dimension. */
void linearised(int n, int m, int k, double *a, double *b, double *c, float *u, float *v, int *w, double *t,
                double *y, double f[k])
{
  int size = n + 2, valid = m - k + 1;
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      c[i * m + j] = 0;
      for (int l = 0; l < k; l++)
        c[i * m + j] += a[i * k + l] * b[l * m + (m - 1 - j)];
    }
  for (int i = 1; i <= n; i++)
    for (int j = 1; j <= n; j++)
      v[i * size + j] = u[(i - 1) * (n + 2) + j] + u[(i + 1) * (n + 2) + j] - u[i * (n + 2) + j - 1];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      for (int l = 0; l < k; l++)
        t[(i * m + j) * k + l] += i + 10 * j + 100 * l;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++)
      w[i * (i - 1) / 2 + j] += i - j;
  for (int i = 0; i < n - 2; i++)
    for (int j = 0; j < valid; j++) {
      y[i * valid + j] = 0;
      for (int l = 0; l < k; l++)
        y[i * valid + j] += f[l] * a[(i + 1) * k + l] * b[l * m + j + l];
    }
#pragma endscop
}
