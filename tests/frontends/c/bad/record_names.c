typedef struct { float re, im; } cplx;
void f(int n, cplx y[n])
{
  for (int i = 0; i < n; i++) {
    cplx s = {.re = 1, 2};
    y[i] = s;
  }
}
