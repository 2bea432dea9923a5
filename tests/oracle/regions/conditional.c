// n=9
#ifdef NEVER
void f(int n, double *restrict a) { while (1) { } }
#else
void f(int n, double *restrict a, const double b[restrict static n], double *sum, void (*call)(int), short)
#ifdef __POLYLOOM__
{
  const double table[3] = {1, 2, 3};
  volatile int unused = 3;
  register int k;
#pragma scop
  for (k = 0; k < n; ++k) { a[k] = b[k] * table[k % 3]; *sum += a[k]; }
#pragma endscop
}
#else
{ a[0] = 7; }
#endif
#endif
