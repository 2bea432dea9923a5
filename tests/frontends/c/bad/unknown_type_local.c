void f(int n, float a[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    real t = a[i];
    a[i] = t * t;
  }
#pragma endscop
}
