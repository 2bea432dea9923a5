void f(int n, int m, double a[n * m])
{
#pragma scop
  for (int k = 0; k < n; k++)
    for (int i = 0; i < k * m; i++)
      a[i] = 0;
#pragma endscop
}
