void f(int n, double a[n])
{
#pragma scop
  int i = 0;
  do {
    a[i] -= 1;
    i++;
  } while (a[i] > 0);
#pragma endscop
}
