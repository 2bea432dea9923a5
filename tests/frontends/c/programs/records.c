// n=6
/* Structures as wholes: lists, named members, copies, literals whose values read what they replace. */
typedef struct { float re, im; } cplx;
void f(int n, cplx x[n], cplx y[n], cplx z[n])
{
  for (int i = 0; i < n; i++) {
    cplx s = {0.f};
    for (int j = 0; j < n; j++) {
      const cplx a = x[i], v = x[j];
      s.re += a.re * v.re - a.im * v.im;
      s.im += a.re * v.im + a.im * v.re;
    }
    y[i] = s;
  }
  for (int i = 1; i < n; i++) {
    const cplx one = {.im = x[i].re, .re = 2};
    z[i] = one;
    *(x + i) = z[i - 1];
    cplx u, w;
    u = w = y[i - 1];
    y[i - 1].re = u.im + w.re;
    y[i] = (cplx){y[i].im, y[i].re + y[i - 1].re};
    const cplx last = (cplx){.im = y[i].im};
    y[i].re += last.re + last.im;
  }
}
