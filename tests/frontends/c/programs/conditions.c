// n=9
/* Affine conditions, `?:`, comparisons as numbers, break and continue. */
void conditions(int n, int a[n][n], double x[n], double y[n + 1])
{
#pragma scop
  for (int i = 0; i < n; ++i) {
    if (i)
      y[i] = x[i] - x[i - 1];
    else
      y[i] = 1;
    x[i] = i == 0 ? y[n - 1] : y[i - 1];
    for (int j = 0; j < n; ++j) {
      if (i == j)
        continue;
      a[i][j] = a[i > 0 ? i - 1 : i][0] + 2 * (i < j) - (j > 3 && i < 5);
      if (i + j > 2 * n - 5)
        break;
      a[i - (i > 0)][j] += i + j;
      if (j < 2) {
        if (i > 4 || !(j != 1))
          a[j][i] -= 3;
      } else if (i < 3)
        a[i][j] *= 2;
    }
  }
#pragma endscop
}
