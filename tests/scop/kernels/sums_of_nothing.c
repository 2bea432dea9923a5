/* Where there is nothing to add, the element of the sum, or of the largest one, may not exist. */
void kernel(int n, int m, double x[m], double s[m + 1], double best[m + 1], int place[m + 1])
{
#pragma scop
  for (int j = n; j < m; j++)
    s[m - n] += x[j];
  for (int j = n; j < m; j++)
    if (x[j] > best[m - n]) {
      best[m - n] = x[j];
      place[m - n] = j;
    }
#pragma endscop
}
