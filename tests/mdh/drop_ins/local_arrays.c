/* A local array and a local sum in every iteration. */
#include <stdio.h>
#define N 33
static int in[N][N], out[N][N];
int main(void) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      in[i][j] = (i * j) % 11;
#pragma scop
  for (int i = 0; i < N; i++) {
    int row[N], acc = 0;
    for (int j = 0; j < N; j++) {
      acc += in[i][j];
      row[j] = acc;
    }
    for (int j = 0; j < N; j++)
      out[j][i] = row[N - 1 - j] - row[j];
  }
#pragma endscop
  long h = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      h = (h * 31 + out[i][j] + 1000003) % 1000003;
  printf("%ld\n", h);
}
