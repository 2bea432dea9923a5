// n=13 a[200]
/* Loops in all their spellings. */
void loops(int n, int *a)
{
  int i, j;
#pragma scop
  for (i = 0; i < n; i++) a[i] = i;
  for (i = n - 1; i >= 0; --i) a[n + i] = a[i] * 2;
  for (i = 0; i <= n - 1; i += 3) a[2 * n + i] = i - 7;
  for (i = n; i > 0; i -= 2) a[3 * n + i] += i;
  for (i = 0; n > i; i = i + 1) a[4 * n + i] = 3 * i + 1;
  for (i = 0; i != n; ++i) a[5 * n + i] = a[i] - i;
  for (i = 0; !(i >= n); i = 2 + i) a[6 * n + i] = -i;
  for (i = 0; i % 5 < 3; i++) a[7 * n + i] = 100 + i;
  for (int i = 2; i < n; i += (i + 4) - (i + 2))
    for (int j = i; j > i - 2; j--) a[8 * n + i] += 10 * j + i;
#pragma endscop
}
