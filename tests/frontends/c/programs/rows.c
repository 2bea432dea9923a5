// n=5 m=4 a[5] p[9]
/* Pointers that are declared inside the SCoP: rows, windows, offsets into one dimension. */
void rows(int n, int m, double A[n][m], double *a, float *p, float q[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    double *row = A[i];
    const double *const flat = a + i * m;
    float *window = &p[i];
    for (int j = 0; j < m; j++)
      row[j] += flat[j];
    q[i] = window[0] + *(window + 1) - window[2];
    a[i * m] = *row;
  }
#pragma endscop
}
