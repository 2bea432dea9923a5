// n=5 m=4 p_n=6 g_2=5 b_n=3 w_n=4 h_n=3
struct inner { int n; double *d; };
struct outer { double x[8]; struct inner *in; struct inner by; double *rows[3]; };
struct outer whole, *shared;
int g[4];
void f(int n, int m, struct inner *p, double b[20], struct outer *o, int *count)
{
  struct outer *local = o + 1;
#pragma scop
  for (int i = 0; i < p->n; i++)
    p->d[i] = b[i] + o->x[i % 8];
  for (int i = 0; i < g[2]; i++)
    o->by.d[i] += whole.by.d[i];
  for (int i = 0; i < *count; i++)
    o->in->d[i] = shared->in->d[i] + i;
  for (int i = 0; i < o->in->n; i++)
    o->rows[1][i] = 1;
#pragma endscop
}
