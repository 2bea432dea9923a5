/* Running sums whose elements are stored again by the next row: host loops may visit a sum and what is
   stored of it at different times. */
void kernel(int n, double x[60], double y[60], double z[60], double u[60], double v[60], double w[60][60])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    double s = 2;
    for (int j = i; j < i / 2 + 2; j++) {
      s += x[i % 3];
      y[j] = s;
    }
  }
  for (int i = 0; i < 4; i++) {
    double s = i;
    for (int j = i; j < i / 2 + 2; j++) {
      s += x[j];
      z[2 * j] = s * 2 + i;
    }
  }
  for (int i = 0; i > -n; i--) {
    double s = x[3];
    for (int j = -i; j < 2 - i / 2; j++) {
      s += x[j + 1];
      u[j] = s;
    }
  }
  for (int i = 0; i < n; i++) {
    double s = 1;
    for (int j = i; j < i / 2 + 2; j++) {
      s += x[j];
      v[j] = s;
      w[j][j] = s - x[i];
    }
  }
#pragma endscop
}
