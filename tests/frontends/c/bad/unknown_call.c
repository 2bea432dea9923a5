#include <stdio.h>
double g(double);
void f(int n, double a[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    a[i] = g(a[i]);
    printf("%f\n", a[i]);
  }
#pragma endscop
}
