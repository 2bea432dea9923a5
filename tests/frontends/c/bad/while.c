void f(int n, double a[n])
{
  int i = 0;
#pragma scop
  while (a[i] > 1) {
    a[i] = a[i] / 2;
    i = i + 1;
  }
#pragma endscop
}
