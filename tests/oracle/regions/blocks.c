// n=6
void f(int n, double a[n])
{
  int s = 5;
  a[0] = s;
  { double s = 4; a[1] = s;
    {
#pragma scop
  for (int i = 0; i < n; i++)
      a[i] += s;
#pragma endscop
    } }
}
