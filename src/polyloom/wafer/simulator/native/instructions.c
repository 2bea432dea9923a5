/* The table of SIMD instructions: each body, as a loop over a run of elements, in order. */
#include "fabric.h"

#define RUN_HEAD(name) \
  static void run_##name(unsigned char *to, long to_step, unsigned char *const from[], const long from_step[], long n)
#define SOURCE(type, letter) type letter = *(const type *)(from_##letter + i * step_##letter);
#define POINTER(letter, k) \
  const unsigned char *from_##letter = from[k]; \
  const long step_##letter = from_step[k];

#define SIMD_INSTRUCTION1(name, to_type, a_type, ...) \
  RUN_HEAD(name) { \
    POINTER(a, 0) \
    for (long i = 0; i < n; i++) { \
      SOURCE(a_type, a) \
      *(to_type *)(to + i * to_step) = (to_type)(__VA_ARGS__); \
    } \
  }
#define SIMD_INSTRUCTION2(name, to_type, a_type, b_type, ...) \
  RUN_HEAD(name) { \
    POINTER(a, 0) POINTER(b, 1) \
    for (long i = 0; i < n; i++) { \
      SOURCE(a_type, a) SOURCE(b_type, b) \
      *(to_type *)(to + i * to_step) = (to_type)(__VA_ARGS__); \
    } \
  }
#define SIMD_INSTRUCTION3(name, to_type, a_type, b_type, c_type, ...) \
  RUN_HEAD(name) { \
    POINTER(a, 0) POINTER(b, 1) POINTER(c, 2) \
    for (long i = 0; i < n; i++) { \
      SOURCE(a_type, a) SOURCE(b_type, b) SOURCE(c_type, c) \
      *(to_type *)(to + i * to_step) = (to_type)(__VA_ARGS__); \
    } \
  }
#include "instructions.inc"
#undef SIMD_INSTRUCTION1
#undef SIMD_INSTRUCTION2
#undef SIMD_INSTRUCTION3

const struct instruction instructions[] = {
#define SIMD_INSTRUCTION1(name, to, a, ...) {#name, run_##name, 1, PE_TYPE_##to, {PE_TYPE_##a}},
#define SIMD_INSTRUCTION2(name, to, a, b, ...) {#name, run_##name, 2, PE_TYPE_##to, {PE_TYPE_##a, PE_TYPE_##b}},
#define SIMD_INSTRUCTION3(name, to, a, b, c, ...) \
  {#name, run_##name, 3, PE_TYPE_##to, {PE_TYPE_##a, PE_TYPE_##b, PE_TYPE_##c}},
#include "instructions.inc"
#undef SIMD_INSTRUCTION1
#undef SIMD_INSTRUCTION2
#undef SIMD_INSTRUCTION3
};
const int64_t instruction_count = PE_INSTRUCTIONS;
