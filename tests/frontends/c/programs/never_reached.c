// n=9 a[40] b[40] b:0..7
// subscripts behind a `break`, which no point reaches, beside others that data chooses
void never_reached(int n, float a[40], int b[40])
{
#pragma scop
  for (int i = 0; i <= n; i++)
    for (int j = 0; j < n; j++) {
      a[b[j] & 7] += i;
      if (j < n - 1) break;
      for (int k = 2; k < n; k++)
        a[(k + 2 * k) / 3] = j;
    }
#pragma endscop
}
