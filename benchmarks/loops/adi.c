/* Implicit steps in alternating directions: tridiagonal systems along the columns, then along the rows. */
#ifndef REAL
#define REAL double
#endif

void kernel(int steps, int n, REAL u[n][n], REAL v[n][n], REAL p[n][n], REAL q[n][n])
{
#pragma scop
  REAL h = (REAL)1 / n;
  REAL dt = (REAL)1 / steps;
  REAL along = 2 * dt / (h * h);
  REAL across = dt / (h * h);
  REAL a = -along / 2, b = 1 + along;
  REAL d = -across / 2, e = 1 + across;
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++) {
      v[0][i] = 1;
      p[i][0] = 0;
      q[i][0] = v[0][i];
      for (int j = 1; j < n - 1; j++) {
        p[i][j] = -a / (a * p[i][j - 1] + b);
        q[i][j] = (-d * u[j][i - 1] + (1 + 2 * d) * u[j][i] - d * u[j][i + 1] - a * q[i][j - 1]) /
                  (a * p[i][j - 1] + b);
      }
      v[n - 1][i] = 1;
      for (int j = n - 2; j >= 1; j--)
        v[j][i] = p[i][j] * v[j + 1][i] + q[i][j];
    }
    for (int i = 1; i < n - 1; i++) {
      u[i][0] = 1;
      p[i][0] = 0;
      q[i][0] = u[i][0];
      for (int j = 1; j < n - 1; j++) {
        p[i][j] = -d / (d * p[i][j - 1] + e);
        q[i][j] = (-a * v[i - 1][j] + (1 + 2 * a) * v[i][j] - a * v[i + 1][j] - d * q[i][j - 1]) /
                  (d * p[i][j - 1] + e);
      }
      u[i][n - 1] = 1;
      for (int j = n - 2; j >= 1; j--)
        u[i][j] = p[i][j] * u[i][j + 1] + q[i][j];
    }
  }
#pragma endscop
}
