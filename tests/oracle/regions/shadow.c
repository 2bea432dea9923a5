// n=6 n_0=5 m=4
int n = 3;
double x[10], z[10];
static void set(int k) { x[k] = n; }
void f(int n, int m, double A[n][m])
{
  { double m = 4; z[0] = m; }
  double x[12];
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      A[i][j] = A[i][j] + x[j];
      set(j);
    }
#pragma endscop
}
