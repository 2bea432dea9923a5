struct flags { unsigned a : 3, : 2; unsigned b : 5; int c; };
struct flags g[9];
void f(int n, struct flags p[n], int a[n])
{
  for (int i = 0; i < n; i++) {
    a[i] = p[i].b + p[i].c;
    p[i].a = a[i];
    p[i] = g[0];
  }
}
