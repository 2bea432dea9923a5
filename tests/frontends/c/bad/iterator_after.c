void f(int n, double a[n])
{
  int i;
#pragma scop
  for (i = 0; i < n - 1; i++) {
    if (2 * i > n)
      break;
    a[i] = 0;
  }
  a[i] = 1;
#pragma endscop
}
