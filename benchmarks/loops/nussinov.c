/* The most pairs that a strand of bases can form: a triangle of maxima, from short pieces to long ones. */
#ifndef REAL
#define REAL double
#endif
#define LARGER(a, b) ((a) >= (b) ? (a) : (b))

void kernel(int n, char base[n], int best[n][n])
{
#pragma scop
  for (int i = n - 1; i >= 0; i--)
    for (int j = i + 1; j < n; j++) {
      best[i][j] = LARGER(best[i][j], best[i][j - 1]);
      best[i][j] = LARGER(best[i][j], best[i + 1][j]);
      if (i < j - 1)
        best[i][j] = LARGER(best[i][j], best[i + 1][j - 1] + (base[i] + base[j] == 3 ? 1 : 0));
      else
        best[i][j] = LARGER(best[i][j], best[i + 1][j - 1]);
      for (int k = i + 1; k < j; k++)
        best[i][j] = LARGER(best[i][j], best[i][k] + best[k + 1][j]);
    }
#pragma endscop
}
