#include <math.h>
#define TWICE(x) ((x) + (x))
void f(int n, double a[n], const char *name)
{
#pragma scop
  for (int i = 0; i < n; i++)
    a[i] = TWICE(a[i]) + "@"[0] * ;
#pragma endscop
}
