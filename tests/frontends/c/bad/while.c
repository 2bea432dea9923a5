void f(int n, double a[n])
{
  int i = 0;
#pragma scop
  while (i < n) {
    a[i] = 0;
    i++;
  }
#pragma endscop
}
