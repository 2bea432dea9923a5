void f(int n, double a[n])
{
  int k = 0;
#pragma scop
  for (int i = 0; i < n; i++)
    a[k++] = a[i] + (k = 2);
#pragma endscop
}
