void f(int n, double a[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    a[i] = 0;
    if (n > 3)
      i += 1;
  }
#pragma endscop
}
