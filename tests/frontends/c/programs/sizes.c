// n=6
short s[4][6];
double wide[100], other[100];
enum { COUNT = sizeof(wide) / sizeof(wide[0]) };

void f(int n, double v[n], double w[7], int x[COUNT], int m[n][3])
{
  int local[n];
#pragma scop
  for (int i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
    wide[i] = other[i] + sizeof(w) + sizeof w[0] + sizeof(local) + sizeof(double[3]) + sizeof(m[0]);
  for (int i = 0; i < (int)(sizeof s / sizeof s[0]); i++)
    for (int j = 0; j < sizeof(s[0]) / sizeof(**s); j++)
      s[i][j] = i + j + sizeof s;
  for (unsigned i = 0; i < sizeof(local) / sizeof(*local); i++)
    v[i] = i;
  for (int i = 0; i < sizeof v; i++)
    x[i] = sizeof(x) + sizeof(float *);
#pragma endscop
}
