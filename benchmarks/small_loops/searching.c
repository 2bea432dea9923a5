/* Where a value is found first or last; packing and unpacking. */
#ifndef REAL
#define REAL double
#endif

void last_place(int n, REAL a[n], int out[1])
{
  int at = -1;
  for (int i = 0; i < n; i++)
    if (a[i] > 2)
      at = i;
  out[0] = at;
}

void last_found(int n, REAL a[n], REAL b[n], REAL out[1])
{
  REAL x = -1;
  for (int i = 0; i < n; i++)
    if (a[i] > 2)
      x = b[i];
  out[0] = x;
}

void first_place(int n, REAL a[n], int out[1])
{
  int at = -1;
  for (int i = n - 1; i >= 0; i--)
    if (a[i] > 2)
      at = i;
  out[0] = at;
}

void pack(int n, REAL a[n], REAL b[n], int out[1])
{
  int k = 0;
  for (int i = 0; i < n; i++)
    if (b[i] > 0) {
      a[k] = b[i];
      k++;
    }
  out[0] = k;
}

void pack_places(int n, int a[n], REAL b[n], int out[1])
{
  int k = 0;
  for (int i = 0; i < n; i++)
    if (b[i] > 0)
      a[k++] = i;
  out[0] = k;
}

void unpack(int n, REAL a[n], REAL b[n])
{
  int k = -1;
  for (int i = 0; i < n; i++)
    if (b[i] > 0) {
      k++;
      b[i] = a[k];
    }
}

void pack_columns(int m, REAL a[m * m], REAL A[m][m])
{
  int k = 0;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++)
      if (A[j][i] > 0)
        a[k++] = A[j][i];
}

void place_in_each_row(int m, REAL A[m][m], int at[m])
{
  for (int i = 0; i < m; i++) {
    REAL x = A[i][0];
    int k = 0;
    for (int j = 1; j < m; j++)
      if (A[i][j] > x) {
        x = A[i][j];
        k = j;
      }
    at[i] = k;
  }
}

void last_of_largest(int n, REAL a[n], REAL out[1], int at[1])
{
  REAL x = a[0];
  int k = 0;
  for (int i = 1; i < n; i++)
    if (a[i] >= x) {
      x = a[i];
      k = i;
    }
  out[0] = x;
  at[0] = k;
}
