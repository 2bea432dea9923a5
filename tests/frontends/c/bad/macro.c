#define LIMIT(x) ((x) * (x))
void f(int n, double a[n])
{
#pragma scop
  for (int k = 0; k < n; k++)
    for (int i = 0; i < LIMIT(k); i++)
      a[i] = UNDEFINED + 1;
#pragma endscop
}
