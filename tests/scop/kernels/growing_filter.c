/* A filter that grows by one coefficient a step: a dot product with one operand backwards, then a map. */
void kernel(int n, double r[n], double y[n], double z[n])
{
#pragma scop
  double alpha = -r[0], beta = 1.0;
  y[0] = alpha;
  for (int k = 1; k < n; k++) {
    beta = (1.0 - alpha * alpha) * beta;
    double sum = 0.0;
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
