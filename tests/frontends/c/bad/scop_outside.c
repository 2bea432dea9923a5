#pragma scop
void f(int n, double a[n])
{
  a[0] = 1;
}
#pragma endscop
