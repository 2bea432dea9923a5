#define MIN(a, b) ((a) < (b) ? (a) : (b))
void kernel(int n, int m, int q, double A[n][m], double B[m][n], double C[n][n], double D[n][m], double T[m][n],
            double s[n], double e[n]) {
  for (int ii = 0; ii < n; ii += 3)
    for (int kk = 0; kk < m; kk += 2)
      for (int i = ii; i < MIN(ii + 3, n); i++)
        for (int j = 0; j < n; j++)
          for (int k = kk; k < MIN(kk + 2, m); k++)
            C[i][j] += A[i][k] * B[k][j];
  for (int ii = 0; ii < n / 2; ii++)
    for (int jj = 0; jj < m / 3; jj++)
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
          T[3 * jj + j][2 * ii + i] = A[2 * ii + i][3 * jj + j] + C[2 * ii + i][0];
  for (int i4 = 0; i4 < n; i4 += 4)
    for (int i2 = i4; i2 < i4 + 4; i2 += 2)
      for (int i = i2; i < i2 + 2; i++)
        if (i < n) s[i] = 2 * s[i] + i;
  for (int jj = m - 1; jj >= 0; jj -= 2)
    for (int i = 0; i < n; i++)
      for (int j = jj; j > jj - 2 && j >= 0; j--)
        if (A[i][j] > 2) D[i][j] = A[i][j] - jj;
  for (int b = 0; b < n; b += 3)
    for (int i = b; i <= b + 3 && i < n; i++)
      e[i] += s[i] * q;
}
