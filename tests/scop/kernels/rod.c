/* Heat in a rod: time steps on the host, each of two maps. */
void kernel(int steps, int n, long a[n], long b[n])
{
#pragma scop
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++)
      b[i] = a[i - 1] + a[i] - a[i + 1];
    for (int i = 1; i < n - 1; i++)
      a[i] = b[i - 1] - b[i] + b[i + 1];
  }
#pragma endscop
}
