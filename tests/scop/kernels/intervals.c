/* The best way to split every interval, short ones first. */
void kernel(int n, long gain[n], long best[n][n])
{
#pragma scop
  for (int a = n - 1; a >= 0; a--)
    for (int b = a + 1; b < n; b++) {
      if (b > a + 1)
        best[a][b] = best[a + 1][b - 1] + gain[a] * gain[b];
      for (int s = a + 1; s < b; s++)
        best[a][b] = best[a][b] > best[a][s] + best[s + 1][b] ? best[a][b] : best[a][s] + best[s + 1][b];
    }
#pragma endscop
}
