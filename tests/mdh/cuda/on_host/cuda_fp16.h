/* Halves as CUDA has them, for kernels that run on this machine: rounded once, from float or double. */
#ifndef CUDA_FP16_H
#define CUDA_FP16_H

#include <math.h>
#include <stdint.h>

struct __half {
  uint16_t bits;
  __half() = default;
  explicit __half(float a) : __half((double)a) {}
  explicit __half(double a) {
    const uint16_t sign = signbit(a) ? 0x8000 : 0;
    int exponent;
    if (isnan(a)) {
      bits = 0x7e00;
      return;
    }
    frexp(a, &exponent);
    exponent = exponent < -13 ? -13 : exponent; /* of a subnormal */
    const double last = ldexp(1.0, (isinf(a) ? 16 : exponent) - 11), rounded = nearbyint(fabs(a) / last) * last;
    if (isinf(a) || rounded > 65504) {
      bits = sign | 0x7c00;
      return;
    }
    const double fraction = frexp(rounded, &exponent);
    if (rounded < ldexp(1.0, -14))
      bits = sign | (uint16_t)ldexp(rounded, 24);
    else
      bits = sign | (uint16_t)(((exponent + 14) << 10) + (int)ldexp(fraction - 0.5, 11));
  }
  explicit operator float() const {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent     ? ldexpf(1024 + fraction, exponent - 25)
                                      : ldexpf(fraction, -24);
    return bits & 0x8000 ? -size : size;
  }
};

#endif
