/* Nobody marks a part: loops among input, output, branches, macros and pragmas, in three functions. */
#include <stdio.h>
#include <stdlib.h>
#define N 120
#define EACH(i, n) for (int i = 0; i < (n); i++)
#define BEGIN {
#define END }
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define CHECKED 1
#endif
#endif
#ifdef __has_attribute
#if __has_attribute(__unused__)
#define UNUSED __attribute__((__unused__))
#endif
#endif

static int A[N][N], B[N][N], C[N][N];

static int drawn(unsigned *state)
{
  *state = *state * 1103515245u + 12345u;
  return (int)(*state >> 16 & 7) - 3;
}

static void product(int n)
{
  if (n > 2)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        C[i][j] = 0;
        for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
      }
  else
    puts("for (small) {");
}

static long trace(int n)
{
  long sum = 0; /* for the sum: { */
  for (int i = 0; i < n; i++) sum += C[i][i];
  return sum;
}

int main(int argc, char **argv)
{
  unsigned state = 7;
  int rounds = argc > 1 ? atoi(argv[1]) : 3, n = N - 1;
  int *far = malloc(N * sizeof *far), row[N];
  EACH(i, N) EACH(j, N) A[i][j] = drawn(&state), B[i][j] = drawn(&state);
  EACH(i, N) far[i] = row[i] = 0;
  while (rounds-- > 0) {
    product(n);
#pragma omp parallel for
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) A[i][j] = (C[j][i] + B[i][j]) % 11; /* } */
    printf("for %d: %ld\n", rounds, trace(n));
    for (int i = 0; i < n; i++) {
      row[i] = 0; // for (each) row {
      for (int j = 0; j < n; j++) row[i] += A[i][j] > 0 ? A[i][j] : 1;
    } state += 1;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        if (row[i] > j) B[i][j] += row[j]; else B[i][j] -= 1;
    for (int i = 0; i < n; i++) BEGIN row[i] += i; far[i] += row[i]; END
    do
      for (int i = 1; i < n; i++) for (int j = 0; j < n; j++) B[i][j] = (B[i][j] + B[i - 1][j]) % 17;
    while (state++ % 2);
  }
  for (int i = 0; i < n; i += 9) printf("%d %d %s\n", row[i], far[i], "for (i) {");
  free(far);
  return 0;
}
