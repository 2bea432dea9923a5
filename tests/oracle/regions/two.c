// n=5
void f(int n, double *a, double *b)
{
  double t = 0;
#pragma scop
  for (int i = 0; i < n; i++) { a[i] += 1; t = a[i]; }
#pragma endscop
  int m = n - 1;
  b[0] = t;
#pragma scop
  for (int i = 0; i < m; i++) b[i] += a[i] * t;
#pragma endscop
}
