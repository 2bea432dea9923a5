/* Forces between bodies, each a structure. */
#include <math.h>
#include <stdio.h>
#define N 64
struct body {
  float x, y, z, m;
};
static struct body b[N];
static float ax[N], ay[N], az[N];
int main(void) {
  for (int i = 0; i < N; i++) {
    b[i].x = i % 4;
    b[i].y = (i / 4) % 4;
    b[i].z = i / 16;
    b[i].m = 1 + i % 3;
  }
#pragma scop
  for (int i = 0; i < N; i++) {
    ax[i] = 0;
    ay[i] = 0;
    az[i] = 0;
    for (int j = 0; j < N; j++) {
      float dx = b[j].x - b[i].x, dy = b[j].y - b[i].y, dz = b[j].z - b[i].z;
      float r = dx * dx + dy * dy + dz * dz + 1.0f;
      float f = b[j].m / (r * sqrtf(r));
      ax[i] += dx * f;
      ay[i] += dy * f;
      az[i] += dz * f;
    }
  }
#pragma endscop
  double s = 0;
  for (int i = 0; i < N; i++)
    s += ax[i] * 1 + ay[i] * 2 + az[i] * 3;
  printf("%.3f\n", s);
}
