/* Column means, centred columns, and the symmetric matrix of their products. */
void kernel(int n, int m, double X[n][m], double mean[m], double P[m][m])
{
#pragma scop
  for (int j = 0; j < m; j++) {
    mean[j] = 0.0;
    for (int i = 0; i < n; i++)
      mean[j] += X[i][j];
    mean[j] /= n;
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      X[i][j] -= mean[j];
  for (int a = 0; a < m; a++)
    for (int b = a; b < m; b++) {
      P[a][b] = 0.0;
      for (int i = 0; i < n; i++)
        P[a][b] += X[i][a] * X[i][b];
      P[b][a] = P[a][b];
    }
#pragma endscop
}
