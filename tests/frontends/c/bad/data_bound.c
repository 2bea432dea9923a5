void f(int n, int row[n + 1], double val[], double y[])
{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int k = row[i]; k < row[i + 1]; k++)
      y[k] += val[k];
#pragma endscop
}
