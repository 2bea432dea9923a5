// n=6
#include <stdio.h>
#include <stdlib.h>
#define N 12
typedef double real;
static real grid[N][N];
void helper_unknown(void);
int main(int argc, char **argv)
{
  int n = atoi(argv[1]);
  real *x = malloc(N * sizeof *x), (*y)[N] = calloc(N, sizeof *y);
  real local[N][N];
  static float kept[N];
  FILE *out = fopen("never", "w");
  helper_unknown();
  for (int i = 0; i < N; i++) x[i] = i;
  const int half = N / 2;
  int last = n - 1, i;
#define TWICE(v) ((v) * 2)
  enum { STEP = 2 };
  for (int t = 0; t < 3; t++) {
    real weight = t + 1;
#pragma scop
    for (i = 0; i < n; i += STEP)
      for (int j = 0; j < half; j++) {
        grid[i][j] = TWICE(x[j]) + y[i][j] + local[last][j] * weight;
        kept[j] += grid[i][j];
      }
#pragma endscop
  }
#undef TWICE
  printf("%g\n", grid[0][0]);
  free(x);
  return 0;
}
