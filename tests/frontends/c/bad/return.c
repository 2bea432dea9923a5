double f(int n, double a[n])
{
  double s = 0;
#pragma scop
  for (int i = 0; i < n; i++)
    s += a[i];
  return s;
#pragma endscop
}
