void f(int n, double a[n])
{
#pragma scop
  static double t[4];
  double w[3] = {1, 2, 1};
  for (int i = 0; i < n; i++) {
    double v[i];
    a[i] = w[0];
  }
#pragma endscop
}
