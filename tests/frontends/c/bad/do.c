void f(int n, double a[n])
{
#pragma scop
  do
    a[0] -= 1;
  while (a[0] > 0);
#pragma endscop
}
