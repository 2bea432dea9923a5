typedef struct { double w[2]; } pair;
void f(int n, double a[n])
{
  for (int i = 0; i < n; i++) {
    pair p = {{1, 2, a[i]}};
    a[i] = p.w[0] + p.w[1];
  }
}
