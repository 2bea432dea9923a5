void f(int n, double a[n])
{
  a[0] = 1 +
#pragma scop
    2;
#pragma endscop
}
