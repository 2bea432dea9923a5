typedef struct { int n; double *p; } row;
void f(int n, row a[n], row b[n])
{
  for (int i = 0; i < n; i++)
    a[i] = b[i];
}
