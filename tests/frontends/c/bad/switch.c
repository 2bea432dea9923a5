void f(int n, double a[n])
{
#pragma scop
  switch ((int)(a[0] += 1)) {
  case 1:
    a[0] = 0;
  }
#pragma endscop
}
