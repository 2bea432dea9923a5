void f(int n, double a[n])
{
#pragma scop
  switch (n) {
  case 1:
    a[0] = 0;
  }
#pragma endscop
}
