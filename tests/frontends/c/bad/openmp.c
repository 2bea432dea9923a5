void f(int n, double *x)
{
#pragma omp parallel for
  for (int i = 0; i < n; i++) x[i] += 1;
#pragma omp for schedule(static)
  for (int i = 0; i < n; i++) x[i] *= 2;
}
