static int fac(int n)
{
  if (n < 2)
    return 1;
  return n * fac(n - 1);
}
void f(int n, double a[n])
{
#pragma scop
  a[0] = fac(4);
#pragma endscop
}
