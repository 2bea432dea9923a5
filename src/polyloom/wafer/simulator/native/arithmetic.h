/* Scalar arithmetic of emitted code: each function rounds once, to its type (_h half, _s float, _i16, _i32).
 *
 * + - * are written infix with a cast, (half)(a + b). Functions of half and float are computed in double and rounded.
 * max and min propagate NaN. Integers wrap; division truncates, by 0 gives 0; a negative exponent truncates. */
#ifndef POLYLOOM_ARITHMETIC_H
#define POLYLOOM_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

typedef _Float16 half;

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

/* The wrapped integer power: square and multiply modulo 2^64, of which the low bits are the result. */
static inline int64_t pe_integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t square = (uint64_t)base, result = 1;
  for (; exponent > 0; exponent /= 2, square *= square)
    if (exponent % 2) result *= square;
  return (int64_t)result;
}

/* max div exp floor ... of each type: made from the compiler's table of scalar functions (ir/scalar_functions). */
#include "functions.inc"

PE_FUNCTIONS_OF_FLOATS(half, h)
PE_FUNCTIONS_OF_FLOATS(float, s)
PE_FUNCTIONS_OF_INTEGERS(int16_t, i16)
PE_FUNCTIONS_OF_INTEGERS(int32_t, i32)

/* A finite value beyond 64 bits is a multiple of 2^32: it wraps to 0, and so do infinities and NaN. */
static inline int64_t pe_truncated(double a) {
  return a > -0x1p63 && a < 0x1p63 ? (int64_t)a : 0;
}

/* Conversions between all types: to_half(x), to_float(x), to_int16(x), to_int32(x). */
#define to_half(x) ((half)(x))
#define to_float(x) ((float)(x))
#define PE_TO_INTEGER(type, x) \
  _Generic((x), half: (type)pe_truncated((double)(x)), float: (type)pe_truncated((double)(x)), default: (type)(x))
#define to_int16(x) PE_TO_INTEGER(int16_t, x)
#define to_int32(x) PE_TO_INTEGER(int32_t, x)

#endif
