// n=30 d:-4..4 e:90..110 c:-9..9
static double larger(double a, double b) { if (a > b) return a; else return b; }
static float clamped(float x, int lo, int hi) { if (x < lo) return lo; if (x > hi) { return hi; } return x; }
static int sign(long v) { if (v < 0) return -1; else if (v == 0) { return 0; } else return 1; }
static int inside(int i, int n) { if (i < 0) return 0; if (i >= n) return n - 1; return i; }
static int rounded(int k) { { if (k > 100) return 3.7; } ; return 2147483647L + k; }
static unsigned char small(int k) { if (k % 2) return k * 100; return -k; }
static int first(int a, int b) { return a; return b; }
static void filled(double *x, int n) { int i, s; for (s = 1, i = 0; i < n; i++) x[i] += s; }

void f(int n, double a[n], double b[n], float c[n], long d[n], int e[n], double g[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    a[i] = larger(a[i], b[inside(i - 1, n)]);
    c[i] = clamped(c[i], -1, i) + small(i) + first(i, 2);
  }
  for (int i = 0; i < n; i++)
    e[i] = sign(d[i]) + rounded(e[i]) + a[inside(i + 2, n)];
  filled(g, n);
  filled(g, n - 3);
#pragma endscop
}
