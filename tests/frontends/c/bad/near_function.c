#include <math.h>
void f(int n, double a[n])
{
#pragma scop
  for (int i = 0; i < n; i++)
    a[i] = sqrrt(a[i]);
#pragma endscop
}
