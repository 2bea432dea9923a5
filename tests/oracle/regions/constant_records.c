// n=9 x_dim=7
struct vector { int dim; double *ve; };
struct point { double x, y; };
void f(int n, const struct vector *x, const struct point p[n], double y[n])
{
#pragma scop
  for (int i = 0; i < x->dim; i++)
    y[i] = x->ve[i] + p[i].x * p[i].y;
#pragma endscop
}
