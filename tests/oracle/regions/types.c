// n=5 flag=1
#include <stdint.h>
#include <stdbool.h>
typedef float vec[4];
void f(int64_t n, vec *v, _Bool b[n], uint8_t u[n], long l[n], unsigned long long q[n], float *h, bool flag)
{
#pragma scop
  for (int64_t i = 0; i < n; i++) { v[i][2] += u[i]; b[i] = v[i][0] > 0; l[i] += q[i]; h[i] = h[i] + 1; u[i] += flag; }
#pragma endscop
}
