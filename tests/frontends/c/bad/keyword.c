#include <math.h>
void f(int n, double a[n])
{
#pragma scop
  fro (int i = 0; i < n; i++)
    a[i] = 0;
#pragma endscop
}
