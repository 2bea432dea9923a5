void f(int n, double a[n])
{
#pragma scop
  if (n > 2)
    a[0] = 1;
#pragma mdh parallel(++)
  else
    a[0] = 2;
#pragma endscop
}
