// n=6
/* One variable under several names: pointers into arrays, addresses of scalars, globals changed in functions. */
int state[4];
static void bump(int by) { state[0] -= by; }
static void add(int n, int *p)
{
  for (int i = 0; i < n; i++)
    *p += 1;
}
static void both(int *a, int *b, int *c)
{
  if (*a > 0) {
    *b = -1;
    *c = 7;
    *a -= 3;
  } else {
    *b = 5;
    c[1] += 2;
  }
}
void aliases(int n, int x[8], int y[n])
{
  int m;
#pragma scop
  m = 1;
  add(n - 3, &m);
  x[m] = 9;
  both(&x[0], &x[0], &x[1]);
  both(x + 2, &x[3], &x[2]);
  if (state[0] > 2) {
    bump(7);
    x[5] = 1;
  } else
    x[6] = 1;
  m = 2;
  for (int i = 0; i < n; i++) {
    y[i] += m;
    add(1, &m);
  }
  x[7] = m;
#pragma endscop
}
