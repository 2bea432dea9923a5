/* Means of three neighbours on a line, back and forth between two arrays. */
#ifndef REAL
#define REAL double
#endif

void kernel(int steps, int n, REAL A[n], REAL B[n])
{
#pragma scop
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++)
      B[i] = (REAL)0.33333 * (A[i - 1] + A[i] + A[i + 1]);
    for (int i = 1; i < n - 1; i++)
      A[i] = (REAL)0.33333 * (B[i - 1] + B[i] + B[i + 1]);
  }
#pragma endscop
}
