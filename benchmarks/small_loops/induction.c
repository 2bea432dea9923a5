/* Scalars that grow by the same amount in each iteration, or not. */
#ifndef REAL
#define REAL double
#endif

void next_index(int n, REAL a[n], REAL b[n])
{
  int j;
  for (int i = 0; i < n - 1; i++) {
    j = i + 1;
    a[i] = a[j] + b[i];
  }
}

void counted_down(int n, REAL a[n], REAL b[n])
{
  int k = n;
  for (int i = 0; i < n; i++) {
    k--;
    a[i] = b[k] + i;
  }
}

void two_a_step(int n, REAL a[n], REAL b[n], REAL c[n])
{
  int j = 0;
  for (int i = 0; i < n / 2; i++) {
    a[j] = b[i] + c[i];
    j++;
    a[j] = b[i] - c[i];
    j++;
  }
}

void flattened(int m, REAL a[m * m], REAL A[m][m], REAL B[m][m])
{
  int k = 0;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++) {
      a[k] = A[i][j] + B[i][j] * 2;
      k++;
    }
}

void either_branch(int n, REAL a[n], REAL b[n], REAL c[n])
{
  int j = 0;
  for (int i = 0; i < n; i++) {
    if (b[i] > 0) {
      a[j] = b[i] + c[i];
      j++;
    } else {
      a[j] = c[i] - b[i];
      j++;
    }
  }
}

void coupled(int n, REAL a[n], REAL b[n])
{
  int j = 0, k = 0;
  for (int i = 0; i < n / 4; i++) {
    a[j + k] = b[j] * b[k];
    j += 1;
    k += 2;
  }
}

void triangular_counter(int m, REAL a[m * m], REAL A[m][m])
{
  int k = 0;
  for (int i = 0; i < m; i++)
    for (int j = 0; j <= i; j++)
      a[k++] = A[i][j];
}

void real_counter(int n, REAL a[n], REAL b[n])
{
  REAL s = 0;
  for (int i = 0; i < n; i++) {
    s += 2;
    a[i] = s * b[i];
  }
}

void given_step(int n, int step, REAL a[n], REAL b[n])
{
  for (int i = 0; i < n; i += step)
    a[i] += b[i];
}

void powers(int n, REAL a[n], REAL b[n])
{
  REAL s = 1;
  for (int i = 0; i < n; i++) {
    a[i] = s * b[i];
    s *= 0.999;
  }
}

void from_both_ends(int n, REAL a[n], REAL b[n])
{
  int j = 0, k = n - 1;
  for (int i = 0; i < n / 2; i++) {
    a[j] = b[k] + 1;
    a[k] = b[j] - 1;
    j++;
    k--;
  }
}

void one_of_three(int n, REAL a[n], REAL b[n])
{
  int k = 0;
  for (int i = 0; i + 2 < n; i += 3) {
    a[k] = b[i] + b[i + 1] + b[i + 2];
    k++;
  }
}
