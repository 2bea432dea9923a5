/* Levinson and Durbin's recursion for the Yule-Walker equations. */
#ifndef REAL
#define REAL double
#endif

void kernel(int n, REAL r[n], REAL y[n], REAL z[n])
{
#pragma scop
  REAL alpha, beta, sum;
  y[0] = -r[0];
  beta = 1;
  alpha = -r[0];
  for (int k = 1; k < n; k++) {
    beta = (1 - alpha * alpha) * beta;
    sum = 0;
    for (int i = 0; i < k; i++)
      sum += r[k - i - 1] * y[i];
    alpha = -(r[k] + sum) / beta;
    for (int i = 0; i < k; i++)
      z[i] = y[i] + alpha * y[k - i - 1];
    for (int i = 0; i < k; i++)
      y[i] = z[i];
    y[k] = alpha;
  }
#pragma endscop
}
