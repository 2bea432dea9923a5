// n=8 k=3
/* Values that are known: scalars in subscripts, locals, shadowing, constants, chained assignments. */
typedef enum { FIRST = 1, SECOND, LAST = SECOND + 2 } place;
#define OFFSET (FIRST + 1)
const int shift = 2;
int table[16];
void scalars(int n, int k, double a[n], double b[2 * n], int c[20])
{
  double s, t;
  int x, y;
  const place z = FIRST;
#pragma scop
  s = 0;
  for (int i = 0; i < n; i++) {
    int m = i > 0 ? i - 1 : i;
    const double t = a[m] * 2;
    b[m + shift] = t;
    s += t;
    {
      int m = 2 * i + 1;
      b[m] -= s;
    }
    b[m] += m;
  }
  x = k;
  y = x + LAST;
  c[y] = x = 4;
  c[x] = y;
  x++;
  c[x] += x;
  if (k > 2)
    x = 7;
  else
    x = 7;
  c[x] = OFFSET;
  c[SECOND] = c[FIRST] = c[0] = y;
  t = s = a[0];
  a[1] = s + t;
  enum { INNER = 5 };
  table[k] = c[2] + INNER * z;
  double local[n];
  for (int i = 0; i < n; i++) local[i] = a[i] + i;
  for (int i = 0; i < n; i++) a[i] = local[n - 1 - i];
#pragma endscop
}
