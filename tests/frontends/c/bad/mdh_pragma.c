void f(int n, double a[n], double s[1])
{
#pragma scop
#pragma mdh parallel(sum)
  for (int i = 0; i < n; i++)
    s[0] += a[i];
#pragma mdh parallel +
  for (int i = 0; i < n; i++)
    s[0] += a[i];
#pragma mdh parallel(++)
  s[0] = 0;
#pragma endscop
}
