// n=9
/* Triangular domains, imperfect nests, labels, lists of expressions. */
void triangles(int n, double L[n][n], double b[n], double x[n])
{
  int i, j, k;
#pragma scop
  for (i = 0; i < n; i++) {
    for (j = 0; j < i; j++) {
      for (k = 0; k < j; k++)
Update: L[i][j] -= L[i][k] * L[j][k];
      L[i][j] /= 4, b[i] += L[i][j];
    }
    x[i] = b[i];
    for (j = 0; j < i; j++)
      x[i] -= L[i][j] * x[j];
Scale:
    x[i] = x[i] / 8;
  }
#pragma endscop
}
