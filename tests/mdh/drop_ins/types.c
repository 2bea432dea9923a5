/* Integers of all sizes, conversions between them and from and to float. */
#include <stdio.h>
#define N 300
static short s[N];
static unsigned char c[N];
static unsigned u[N];
static long l[N];
static float f[N];
static signed char sc[N];
static unsigned long ul[N];
int main(void) {
  for (int i = 0; i < N; i++) {
    s[i] = (short)(i * 211);
    c[i] = (unsigned char)(i * 3);
    u[i] = i * 2654435761u;
    l[i] = (long)i * i - 1000;
    f[i] = i * 0.5f;
    sc[i] = (signed char)(i - 150);
    ul[i] = (unsigned long)i * 0x9E3779B97F4A7C15ul;
  }
#pragma scop
  for (int i = 0; i < N; i++) {
    s[i] = s[i] * s[i] + c[i];
    c[i] = c[i] - sc[i];
    u[i] = u[i] / 7 + (u[i] % 13) - i;
    l[i] = l[i] / -3 + l[i] % 5;
    f[i] = f[i] * 3 + c[i] / 2;
    sc[i] = -sc[i];
    ul[i] = (ul[i] >> 3) ^ (ul[i] << 7);
    if (i % 3 == 1)
      l[i] += u[i] > 100u;
    else if (i / 7 == 2)
      l[i] -= f[i] > 20;
    u[i] += -1 < 0u;
    l[i] += (int)f[i];
    s[i] += (short)f[i];
    f[i] = (float)(u[i] & 0xFFFF);
  }
#pragma endscop
  unsigned long h = 0;
  for (int i = 0; i < N; i++)
    h = h * 31 + (unsigned long)(s[i] + c[i] * 3l + u[i] * 5l + l[i] * 7 + (long)f[i] + sc[i]) + ul[i];
  printf("%lu\n", h);
}
