// n=9 u=7
/* Heads with several variables, values after loops, loops that count down to zero. */
int counter;
static void count(int by) { counter += by; }
void heads(int n, unsigned long u, int a[n], int b[n], int c[40])
{
  int i, j, k = 0;
#pragma scop
  for (i = 0, j = n - 1; i < j; i++, j--)
    a[i] = b[j];
  for (i = 0; i < n - 3; i += 2)
    c[i] = i;
  c[i] = 100 + i;
  for (j = 5; j >= 0 && j > n - 7; j--)
    c[20 + j] = j;
  c[20 + j] = -j;
  for (unsigned long v = u; v-- > 0;)
    c[30 + v] += v;
  for (unsigned v = n - 1; v < n; v--)
    b[v] = a[v] - v;
  for (k = 0, c[39] = 7; k < 3; ++k)
    c[38] += k;
  for (int p = 0, q = 3; p < n; p += 1, q += 3)
    c[q] -= p;
  counter = 2;
  count(n);
  c[0] += counter;
#pragma endscop
}
