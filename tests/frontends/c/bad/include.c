#include "missing.h"
void f(int n, double a[n])
{
#pragma scop
  a[0] = 1;
#pragma endscop
}
