void f(int n, double **a, double *b, double *c)
{
#pragma scop
  for (int i = 0; i < n; i++)
    a[i][0] = 0;
  b = c;
  for (int i = 0; i < n; i++)
    b[i] = (double)(c == b);
  *b++ = 1;
#pragma endscop
}
