// n=16 u8:0..255 s8:-128..127 u16:0..65535 f:-40..40 d:-40..40 u32:0..2000000000 i64:-1000..1000 b:0..1
/* Integer promotion, the usual conversions, wrapping, truncation. */
#include <stdint.h>
#include <stdbool.h>
void types(int n, uint8_t u8[n], signed char s8[n], unsigned short u16[n], unsigned u32[n], int64_t i64[n],
           float f[n], double d[n], bool b[n], short s16[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    u8[i] = u8[i] + 200;
    s8[i] = s8[i] * 3 - u8[i];
    u16[i] = -u16[i] + (u8[i] << 9);
    u32[i] = u32[i] * 5u - 7;
    i64[i] = i64[i] * 1000000007L + s8[i] / 3 + u32[i] % 1000;
    s16[i] = (short)(u16[i] ^ 0x55aa) >> 3;
    b[i] = s16[i];
    b[i] = !b[i] || (f[i] > 0.5);
    f[i] = f[i] * 0.1f + d[i] / 3;
    d[i] = f[i] + 1 / 2 + 1.0 / 4 + i;
    d[i] += (int)f[i] + (u32[i] > -1) + 'a' + (-1 < 1u);
    i64[i] += (long)d[i] + (unsigned char)i64[i] + 10000000000;
    f[i] = (float)i64[i] + u8[i] / 2.f + b[i];
  }
#pragma endscop
}
