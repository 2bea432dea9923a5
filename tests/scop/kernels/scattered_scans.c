/* What running sums hold, stored at places that are no affine function of the loop. */
void kernel(int n, int m, long x[60], long y[60], long z[60], long u[60], long v[60], long t[60][60])
{
#pragma scop
  long s = 2;
  for (int i = 0; i < n; i++) {
    s += x[i];
    y[2 * i - i / 2] = s;
  }
  long d = 1;
  for (int i = 2; i < m; i++) {
    d -= t[20][i];
    t[19 - i][2 * i - i / 2] = d;
  }
  for (int r = 0; r < m; r++) {
    long p = r;
    for (int c = 0; c < n; c++) {
      p += x[c];
      t[r + 30][c + c / 3] = 2 * p + y[c];
    }
  }
  long q = 0;
  for (int i = n - 1; i >= 0; i--) {
    q += x[i] - z[i];
    u[i % 7 + 8 * (i / 7)] = q;
    v[i < 3 ? i + 20 : i] = q + 1;
  }
#pragma endscop
}
