/* All shortest paths between N towns (Floyd and Warshall). */
#include <stdio.h>

#define N 90

void shortest_paths(int d[N][N])
{
#pragma scop
  for (int k = 0; k < N; k++)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++)
        d[i][j] = d[i][k] + d[k][j] < d[i][j] ? d[i][k] + d[k][j] : d[i][j];
#pragma endscop
}

int main(void)
{
  static int d[N][N];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      d[i][j] = i == j ? 0 : 1 + (i * 37 + j * 101) % 997;
  shortest_paths(d);
  long sum = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      sum += (long)(i + 2 * j) * d[i][j];
  printf("shortest paths: %ld\n", sum);
  return 0;
}
