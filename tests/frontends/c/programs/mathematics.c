// n=12 x:1..9 y:1..7 g:1..9 close
#include <math.h>
void mathematics(int n, double x[n], float g[n], double y[n], double out[n][22], float gout[n][8])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    out[i][0] = sqrt(x[i]) + exp(-x[i]);
    out[i][1] = log(x[i]) * pow(x[i], y[i]);
    out[i][2] = fabs(-x[i]) + floor(x[i] / 3) - ceil(y[i] / 3);
    out[i][3] = fmax(x[i], y[i]) - fmin(x[i], 2.5);
    out[i][4] = sin(x[i]) + cos(y[i]) * tan(x[i]);
    out[i][5] = atan2(y[i], x[i]) + hypot(x[i], y[i]);
    out[i][6] = round(x[i] - 2.5) + round(2.5 - x[i]) + trunc(x[i] * 1.3) + rint(x[i] + 0.5);
    out[i][7] = fmod(x[i] * 7, y[i]) + cbrt(x[i]) + exp2(y[i]) + log2(x[i]) + log10(y[i]);
    out[i][8] = fdim(x[i], y[i]) + erf(x[i] / 9) + tanh(y[i]) + sinh(0.1 * x[i]) + cosh(0.1 * x[i]);
    out[i][9] = asin(x[i] / 100) + acos(x[i] / 100) + atan(x[i]) + abs(i - 5) + M_PI;
    gout[i][0] = sqrtf(g[i]) + expf(-g[i]) * g[i];
    gout[i][1] = fmaxf(g[i], 1.5f) + fabsf(-g[i]) + powf(g[i], 1.5f);
    gout[i][2] = sqrt(g[i]);
    gout[i][3] = isnan(g[i]) ? 1 : 2;
  }
#pragma endscop
}
