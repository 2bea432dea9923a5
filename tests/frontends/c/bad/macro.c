#define LIMIT(x) ((x) * (x))
void f(int n, double a[n])
{
#pragma scop
  for (int i = 0; i < LIMIT(n); i++)
    a[i] = UNDEFINED + 1;
#pragma endscop
}
