/* Writes that data decide: a scalar of the loop, one that lives on, an element, an element that data choose. */
void kernel(int n, int m, int a[n], int z[n], int y[n], int v[n], int last[1], int bins[8], int w[n + 1])
{
#pragma scop
  int t;
  for (int i = 0; i < n; i++) {
    t = 7;
    if (a[i] > 2)
      t = 1;
    y[i] = t + z[i];
  }
  last[0] = 5;
  for (int i = 0; i < n; i++) {
    if (z[i] > 2)
      last[0] = z[i];
    v[i] = 2 * last[0];
  }
  for (int i = 0; i < n; i++)
    w[i] = i;
  for (int i = 0; i < n; i++)
    if (a[i] < z[i])
      w[i + 1] = w[i] + a[i];
  for (int i = 0; i < 8; i++)
    bins[i] = m;
  for (int i = 0; i < n; i++)
    bins[a[i] & 7] = i;
  for (int i = 0; i < 8; i++)
    bins[i] += n;
#pragma endscop
}
