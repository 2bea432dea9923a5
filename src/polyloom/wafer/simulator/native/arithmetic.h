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

#define PE_ARITHMETIC_OF_FLOATS(type, suffix) \
  static inline type neg_##suffix(type a) { return (type)-a; } \
  static inline type abs_##suffix(type a) { return (type)__builtin_fabs((double)a); } \
  static inline type max_##suffix(type a, type b) { return a > b || a != a ? a : b; } \
  static inline type min_##suffix(type a, type b) { return a < b || a != a ? a : b; } \
  static inline type div_##suffix(type a, type b) { return (type)(a / b); } \
  static inline type pow_##suffix(type a, type b) { return (type)__builtin_pow((double)a, (double)b); } \
  static inline type exp_##suffix(type a) { return (type)__builtin_exp((double)a); } \
  static inline type log_##suffix(type a) { return (type)__builtin_log((double)a); } \
  static inline type sqrt_##suffix(type a) { return (type)__builtin_sqrt((double)a); } \
  static inline type rsqrt_##suffix(type a) { return (type)(1.0 / __builtin_sqrt((double)a)); } \
  static inline type tanh_##suffix(type a) { return (type)__builtin_tanh((double)a); } \
  static inline type sigmoid_##suffix(type a) { return (type)(1.0 / (1.0 + __builtin_exp(-(double)a))); } \
  static inline type erf_##suffix(type a) { return (type)__builtin_erf((double)a); } \
  static inline type floor_##suffix(type a) { return (type)__builtin_floor((double)a); } \
  static inline type ceil_##suffix(type a) { return (type)__builtin_ceil((double)a); } \
  static inline type round_##suffix(type a) { return (type)__builtin_rint((double)a); } \
  static inline type trunc_##suffix(type a) { return (type)__builtin_trunc((double)a); } \
  static inline type sin_##suffix(type a) { return (type)__builtin_sin((double)a); } \
  static inline type cos_##suffix(type a) { return (type)__builtin_cos((double)a); } \
  static inline type tan_##suffix(type a) { return (type)__builtin_tan((double)a); } \
  static inline type asin_##suffix(type a) { return (type)__builtin_asin((double)a); } \
  static inline type acos_##suffix(type a) { return (type)__builtin_acos((double)a); } \
  static inline type atan_##suffix(type a) { return (type)__builtin_atan((double)a); } \
  static inline type sinh_##suffix(type a) { return (type)__builtin_sinh((double)a); } \
  static inline type cosh_##suffix(type a) { return (type)__builtin_cosh((double)a); } \
  static inline type exp2_##suffix(type a) { return (type)__builtin_exp2((double)a); } \
  static inline type log2_##suffix(type a) { return (type)__builtin_log2((double)a); } \
  static inline type log10_##suffix(type a) { return (type)__builtin_log10((double)a); } \
  static inline type cbrt_##suffix(type a) { return (type)__builtin_cbrt((double)a); }

PE_ARITHMETIC_OF_FLOATS(half, h)
PE_ARITHMETIC_OF_FLOATS(float, s)

/* The wrapped integer power: square and multiply modulo 2^64, of which the low bits are the result. */
static inline int64_t pe_integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t square = (uint64_t)base, result = 1;
  for (; exponent > 0; exponent /= 2, square *= square)
    if (exponent % 2) result *= square;
  return (int64_t)result;
}

#define PE_ARITHMETIC_OF_INTEGERS(type, suffix) \
  static inline type neg_##suffix(type a) { return (type)-(int64_t)a; } \
  static inline type abs_##suffix(type a) { return a < 0 ? neg_##suffix(a) : a; } \
  static inline type max_##suffix(type a, type b) { return a > b ? a : b; } \
  static inline type min_##suffix(type a, type b) { return a < b ? a : b; } \
  static inline type div_##suffix(type a, type b) { return b == 0 ? 0 : (type)((int64_t)a / b); } \
  static inline type pow_##suffix(type a, type b) { return (type)pe_integer_power(a, b); } \
  static inline type floor_##suffix(type a) { return a; } \
  static inline type ceil_##suffix(type a) { return a; } \
  static inline type round_##suffix(type a) { return a; } \
  static inline type trunc_##suffix(type a) { return a; }

PE_ARITHMETIC_OF_INTEGERS(int16_t, i16)
PE_ARITHMETIC_OF_INTEGERS(int32_t, i32)

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
