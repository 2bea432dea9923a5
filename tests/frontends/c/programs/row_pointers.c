// n=5 m=6 d[60] s[60] o[60]
/* Pointers that are set where they are used: rows, two one after the other, moved ones, elements. */
void row_pointers(int n, int m, double *d, const double *s, int *o)
{
  const double *above, *below;
  double *row, *end;
  int *p, *q, t, k = 0;
#pragma scop
  for (int y = 1; y < n - 1; y++) {
    above = s + (y - 1) * m;
    below = s + (y + 1) * m;
    row = d + y * m;
    for (int x = 1; x < m - 1; x++)
      row[x] = above[x - 1] - below[x + 1];
    row = d + (n - 1 - y) * m;
    for (int x = 0; x < m; x++)
      *row++ += *above++;
  }
  for (int y = 0; y < n; y++) {
    end = d + k;
    k += m;
    for (int x = 0; x < m; x++)
      end[x] *= k + x;
  }
  for (int i = 0; i < 20; i++) {
    p = o + i;
    q = &o[39 - i];
    t = *p;
    *p = *q - 1;
    *q = t;
  }
#pragma endscop
}
