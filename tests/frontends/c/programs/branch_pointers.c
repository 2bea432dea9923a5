// n=6
/* Pointers that a branch declares, and that begin with an offset, change what its condition reads. */
typedef int *row;
static void put(int *p, int v)
{
  p[0] = v;
  p[1] = v + 1;
}
void branch_pointers(int n, int x[16], int y[16], int z[16])
{
#pragma scop
  x[2] = 3;
  for (int i = 0; i < n; i++) {
    if (x[2] > 1) {
      int *p = x;
      for (int k = 0; k < 4; k++)
        p[k] = k - i;
    }
  }
  y[4] = 5;
  if (y[4] > 1) {
    row p = 1 + y;
    p[3] = 0;
    y[7] = 8;
    y[9] = 1;
  }
  for (int i = 0; i < n; i++) {
    z[i + 1] = 2 + i;
    if (z[i + 1] > 1) {
      put(i + z, -1);
      z[i + 4] = 7;
      z[i + 6] += 3;
    }
  }
#pragma endscop
}
