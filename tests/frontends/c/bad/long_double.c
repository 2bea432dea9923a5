void f(int n, double a[n])
{
  double known = 0.1L;
#pragma scop
  double row[2] = {1, 2.L};
  for (int i = 0; i < n; i++) {
    a[i] = a[i] * 0.1L + known;
    if (i < 0x1p2L)
      a[i] -= row[i % 2];
  }
#pragma endscop
}
