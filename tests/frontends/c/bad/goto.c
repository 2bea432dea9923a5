void f(int n, double a[n])
{
#pragma scop
  a[0] = 0;
  goto end;
end:
  a[1] = 0;
#pragma endscop
}
