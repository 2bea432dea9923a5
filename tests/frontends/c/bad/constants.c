void f(int n, const double a[n], double b[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    a[i] = 1;
    b[i] = "text";
  }
  b = 0;
#pragma endscop
}
