/* The table of DSD operations: each one's value, as a loop over a run of elements, in order. */
#include "csl_fabric.h"

enum { PE_TYPE_uint16_t = PE_TYPE_int16_t, PE_TYPE_uint32_t = PE_TYPE_int32_t };

static _Thread_local uint32_t csl_carry; /* of addc16, from one element to the next */

static inline uint16_t csl_add_with_carry(uint16_t a, uint16_t b) {
  uint32_t sum = (uint32_t)a + b + csl_carry;
  csl_carry = sum >> 16;
  return (uint16_t)sum;
}

static inline uint16_t csl_fixed_point(float a) {
  if (a != a) return 0;
  float r = __builtin_rintf(a);
  return (uint16_t)(int16_t)(r > 32767.0f ? 32767.0f : r < -32768.0f ? -32768.0f : r);
}

/* The significand in [1, 2), with its sign; zero, infinities and NaN as they are. */
static inline float csl_mantissa_s(float a) {
  int exponent;
  return a == 0.0f || a != a || a - a != 0.0f ? a : 2.0f * __builtin_frexpf(a, &exponent);
}
static inline half csl_mantissa_h(half a) { return (half)csl_mantissa_s((float)a); }

#define CSL_HEAD(name) \
  static void csl_value_##name(unsigned char *to, long to_step, unsigned char *const from[], const long from_step[], long n)
#define CSL_SOURCE(type, letter, k) type letter = *(const type *)(from[k] + i * from_step[k]);
#define CSL_OPERATION1(name, to_type, a_type, ...) \
  CSL_HEAD(name) { \
    for (long i = 0; i < n; i++) { \
      CSL_SOURCE(a_type, a, 0) \
      *(to_type *)(to + i * to_step) = (to_type)(__VA_ARGS__); \
    } \
  }
#define CSL_OPERATION2(name, to_type, a_type, b_type, ...) \
  CSL_HEAD(name) { \
    for (long i = 0; i < n; i++) { \
      CSL_SOURCE(a_type, a, 0) CSL_SOURCE(b_type, b, 1) \
      *(to_type *)(to + i * to_step) = (to_type)(__VA_ARGS__); \
    } \
  }
#define CSL_OPERATION3(name, to_type, a_type, b_type, c_type, ...) \
  CSL_HEAD(name) { \
    for (long i = 0; i < n; i++) { \
      CSL_SOURCE(a_type, a, 0) CSL_SOURCE(b_type, b, 1) CSL_SOURCE(c_type, c, 2) \
      *(to_type *)(to + i * to_step) = (to_type)(__VA_ARGS__); \
    } \
  }
#include "csl_operations.inc"
#undef CSL_OPERATION1
#undef CSL_OPERATION2
#undef CSL_OPERATION3

static const struct instruction csl_table[] = {
#define CSL_OPERATION1(name, to, a, ...) {#name, csl_value_##name, 1, PE_TYPE_##to, {PE_TYPE_##a}},
#define CSL_OPERATION2(name, to, a, b, ...) {#name, csl_value_##name, 2, PE_TYPE_##to, {PE_TYPE_##a, PE_TYPE_##b}},
#define CSL_OPERATION3(name, to, a, b, c, ...) {#name, csl_value_##name, 3, PE_TYPE_##to, {PE_TYPE_##a, PE_TYPE_##b, PE_TYPE_##c}},
#include "csl_operations.inc"
#undef CSL_OPERATION1
#undef CSL_OPERATION2
#undef CSL_OPERATION3
};
