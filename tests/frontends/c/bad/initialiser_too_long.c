void f(int n, double a[n])
{
  for (int i = 0; i < n; i++) {
    double w[2] = {1, 2, a[i]};
    a[i] = w[0] + w[1];
  }
}
