// n=9 m=4
void f(int n, int m, int a[n], double b[n][n])
{
  __pencil_assume(m < n);
#pragma scop
  __pencil_assume(n > 3);
  for (int i = 0; i < min(n, m + 3); i++)
    for (int j = max(0, i - 2); j < floord(n, 2); j++) {
      b[i][j] = max(b[i][j], a[i]);
      a[ceild(j, 2)] += intMod(j, 3) - min(a[j], 2);
    }
#pragma endscop
}
