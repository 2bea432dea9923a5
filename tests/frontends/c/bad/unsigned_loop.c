void f(unsigned n, double a[n])
{
#pragma scop
  for (unsigned i = n - 1; i >= 0; i--)
    a[i] = 0;
#pragma endscop
}
