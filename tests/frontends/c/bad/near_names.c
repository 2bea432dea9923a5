#include <math.h>
void f(int n, double alpha, double a[n])
{
#pragma scop
  for (int i = 0; i < n; i++)
    a[i] = alhpa * sqrrt(a[i]);
#pragma endscop
}
