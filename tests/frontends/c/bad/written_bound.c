void f(int n, int m, double a[m])
{
#pragma scop
  for (int t = 0; t < m; t++) {
    n = n + t;
    for (int i = 0; i < n; i++)
      a[i] = 0;
  }
#pragma endscop
}
