void f(int n, double a[n])
{
#pragma scop
  a[0] = 1;
#pragma scop
  a[1] = 1;
#pragma endscop
#pragma endscop
}
