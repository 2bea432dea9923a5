// n=7 m=5 p=0 s=3 flat[7] b[12]
void f(int n, int m, int p, int s, float flat[7 * 5], float a[7][5], int z[64], int y[1100], int out[12],
       int b[60], int c[60])
{
  int k, l, one = 1, r, t;
  long q = 3;
  int *py = y + 10, *pz = z;
  unsigned char narrow;
#pragma scop
  t = 4;
  narrow = 250;
  r = 0;
  k = -1;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      k++;
      flat[k] = 2 * a[i][j];
    }
  out[0] = k;
  l = 0;
  for (int i = 10; i > 0; i -= 3) {
    pz[l] = i;
    l += 2;
    z[l + one] = 1;
    l = 3 + l;
  }
  out[1] = l;
  for (int i = 0; i < n; i++) {
    q += 6;
    y[q] = q;
    for (int j = 0; j < 5; j++) {
      py[q + 200 + j] = q;
      q -= 1;
    }
  }
  out[2] = q;
  k = 5;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < p; j++)
      k += 3;
    y[400 + k] = i;
    k++;
    for (int j = 0; j < p - 2; j++) {
      y[k] = 77;
      k--;
    }
  }
  out[3] = k;
  for (int i = 0; i < n; i++) {
    r = i * m;
    for (int j = 0; j < m; j++)
      b[r + j] = c[r + j] + r;
  }
  out[4] = r;
  k = 0;
  for (int i = 0; i < n; i++)
    for (int j = i; j < m; j++) {
      c[k] += i;
      k++;
    }
  out[5] = k;
  k = 2;
  for (int i = 0; i < n; i++) {
    if (i == 3)
      continue;
    k += 2;
    y[500 + k] = i;
  }
  out[6] = k;
  k = 1;
  for (int i = 0; i < n; i++) {
    if (c[i] > 3)
      k++;
    y[600 + k] = i;
  }
  out[7] = k;
  k = 0;
  for (int i = 0; i < n; i++) {
    int k = i;
    k++;
    y[700 + k] = k;
  }
  out[8] = k;
  for (int i = 0; i < n; i++) {
    narrow++;
    y[750 + narrow] = narrow;
  }
  for (int i = 0; i < n; i++) {
    k = k + s;
    y[800 + k] = k;
    t = t * 2;
  }
  out[9] = t;
  for (int i = 0; i < n; i++) {
    k = i;
    k += i;
    y[900 + k] = k;
  }
  out[10] = k;
  for (int i = 0, j = n; i < j; i++, j--)
    l -= m;
  out[11] = l;
#pragma endscop
}
