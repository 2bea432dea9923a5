/* Subscripts with numbers that only the caller knows. */
#ifndef REAL
#define REAL double
#endif

void shifted_by(int n, int k, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n - k; i++)
    a[i] = a[i + k] + b[i];
}

void back_by(int n, int k, REAL a[n], REAL b[n])
{
  for (int i = k; i < n; i++)
    a[i] = a[i - k] * 0.5 + b[i];
}

void strided_by(int n, int k, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n / k; i++)
    a[i * k] += b[i];
}

void both_ways(int n, int k, REAL a[n], REAL b[n])
{
  if (k > 0) {
    for (int i = 0; i < n - k; i++)
      a[i] = a[i + k] * 0.5 + b[i];
  } else {
    for (int i = -k; i < n; i++)
      a[i] = a[i + k] * 0.5 + b[i];
  }
}

void filter(int n, int taps, REAL a[n], REAL b[n], REAL w[n])
{
  for (int j = 0; j < taps; j++)
    for (int i = 0; i < n - taps; i++)
      a[i] += b[i + j] * w[j];
}

void halves(int n, REAL a[n], REAL b[n])
{
  int half = n / 2;
  for (int i = 0; i < half; i++) {
    a[i + half] = a[i] + b[i];
    b[i + half] = a[i] * b[i];
  }
}
