union u { int i; float f; };
struct node { struct node *next; double v; };
void f(int n, double _Complex z[n], union u w[n], struct node p[n], double a[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    a[i] = w[i].f;
    p[i].v = p[i].next->v;
    a[i] %= 3;
  }
#pragma endscop
}
