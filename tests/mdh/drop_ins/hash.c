/* A hash of bytes in unsigned integers that wrap. */
#include <stdint.h>
#include <stdio.h>
#define N 500
int main(void) {
  uint8_t d[N];
  uint32_t h[8];
  for (int i = 0; i < N; i++)
    d[i] = (uint8_t)(i * i * 7 + 3);
#pragma scop
  for (int k = 0; k < 8; k++) {
    h[k] = 2166136261u + k;
    for (int i = 0; i < N; i++) {
      h[k] ^= d[i];
      h[k] *= 16777619u;
      h[k] = (h[k] << 5) | (h[k] >> 27);
    }
  }
#pragma endscop
  for (int k = 0; k < 8; k++)
    printf("%u ", h[k]);
  puts("");
}
