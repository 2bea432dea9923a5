/* prefix sums whose first element is stored on its own: forwards, in a longer array, along both axes, of rows of a matrix */
void kernel(int n, int m, double a[n], double s[n], double longer[n + 3], double t[n][m], double b[n][m], int p[n + 1], int counts[n])
{
#pragma scop
  s[0] = a[0];
  for (int i = 1; i < n; i++)
    s[i] = s[i - 1] + a[i];
  longer[0] = 2 * a[0];
  for (int i = 1; i < n; i++)
    longer[i] = longer[i - 1] + a[i];
  for (int i = 0; i < n; i++) {
    t[i][0] = b[i][0];
    for (int j = 1; j < m; j++)
      t[i][j] = t[i][j - 1] + b[i][j];
  }
  for (int j = 0; j < m; j++)
    for (int i = 1; i < n; i++)
      t[i][j] = t[i - 1][j] + t[i][j];
  p[0] = 0;
  for (int i = 0; i < n; i++)
    p[i + 1] = p[i] + counts[i];
#pragma endscop
}
