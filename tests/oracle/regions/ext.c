// n=6
#include "ext.h"
extern int other(double);
extern float open_ended[];
static inline void unused(void) { other(B[0]); }
void f(void)
{
#pragma scop
  for (int i = 0; i < N; i++)
    A[i] = B[i] + scale;
#pragma endscop
  return;
}
