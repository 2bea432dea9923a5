// n=7 m=3 a[40] b[40] c[40]
/* Code that is never reached: loops without iterations, conditions that contradict those around. What integers
   would become there is asked all the same. */
void never(int n, int m, int a[], int b[], int c[])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    a[i] = i;
    for (int j = i; j < i; j += 2) {
      int s = 3;
      for (int k = m - 1; k < n; k++)
        s = s - 1;
      a[j] = s;
    }
    for (int j = n; j < i; j++) {
      int s = j;
      for (int k = 0; k < j; k++) {
        s += 2;
        b[k] = s;
      }
    }
    if (i > n)
      for (int k = 0; k < m; k++) {
        int t = k;
        for (int l = k; l < n; l++)
          t++;
        b[t] += i;
      }
    if (i < 3 && i > m + 3 && m > 0) {
      int t = 0;
      for (int l = n; l > i; l -= 3)
        t += 2;
      c[t] = 1;
    }
  }
  int u = 0;
  for (int i = 5; i < 5; i++)
    for (int j = 0; j < n; j++)
      u++;
  c[u] = 7;
  int v = 2;
  for (int i = 0; i < n; i++) {
    for (int j = m; j < m; j++)
      for (int k = 0; k < n; k++)
        v++;
    v += 2;
    c[v] += v;
  }
  for (int i = m; i < m; i++)
    for (int j = 0; j >= 0; j++)
      b[j] = i;
#pragma mdh parallel(++)
  for (int i = 20; i < 20; i++)
    b[i] = 0;
  for (int i = n; i < n - m - n + m; i++) {
    int u = i;
    for (int k = 0; k < i; k++)
      u++;
    c[i] = u;
  }
#pragma endscop
}
