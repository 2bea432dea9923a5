// n=9
void f(int n, double a[n], double b[n], double c[4][3])
{
  double *p = a + 3, *q = &b[0], *r = &c[0][0];
#pragma scop
  for (int i = 0; i < n - 3; i++)
    q[i] = p[i];
  for (int i = 0; i < 11; i++)
    r[i + 1] += r[i];
#pragma endscop
}
