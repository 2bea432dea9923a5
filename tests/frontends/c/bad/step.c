void f(int n, int s, double a[n])
{
#pragma scop
  for (int i = 0; i < n; i += s)
    a[i] = 0;
  for (int i = 1; i < n; i *= 2)
    a[i] = 1;
  for (double x = 0; x < 1; x += 0.5)
    a[(int)x] += x;
#pragma endscop
}
