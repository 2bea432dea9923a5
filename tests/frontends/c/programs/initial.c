// n=6
/* Arrays with initial values inside the SCoP. */
void initial(int n, double a[n], int b[2][3])
{
#pragma scop
  const double w[3] = {0.25, 0.5, 0.25};
  int t[2][3] = {{1}, {2, 3}};
  float z[100] = {0};
  for (int i = 1; i < n - 1; i++) {
    double s[2] = {a[i], w[1] * i};
    a[i] = w[0] * a[i - 1] + w[1] * s[0] + w[2] * a[i + 1] + s[1] + z[90 + i];
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      b[i][j] += t[i][j];
#pragma endscop
}
