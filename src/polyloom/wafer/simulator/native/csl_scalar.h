/* The scalar side of C that is made from CSL, over csl.h: checked elements, arithmetic that wraps around, conversions. */
#ifndef POLYLOOM_CSL_SCALAR_H
#define POLYLOOM_CSL_SCALAR_H

/* A local variable without a first value begins to live. */
static inline void csl_forget(csl_address address, size_t bytes) {
  __builtin_memset(self->shadow + address / 2, 0, (bytes + 1) / 2);
}

/* The address of element `index` of `count` (-1: nobody knows how many) of `size` bytes each. */
static inline csl_address csl_element(csl_address base, int64_t index, int64_t count, int64_t size,
                                      const struct pe_site *site) {
  if (__builtin_expect(count >= 0 && (index < 0 || index >= count), 0)) csl_fail_index(index, count, site);
  const int64_t address = base + index * size;
  if (__builtin_expect(address < 0 || address > UINT16_MAX, 0)) pe_fail_bounds(site);
  return (csl_address)address;
}

/* Truncating division: by zero it is an error; the smallest number by -1 wraps around. Shifts by the width or more leave
 * nothing but the sign. */
#define CSL_ARITHMETIC(type, wide, name) \
  static inline type csl_div_##name(type a, type b, const struct pe_site *site) { \
    if (__builtin_expect(b == 0, 0)) csl_fail("division", "division by zero", site); \
    return (type)((type)-1 < 0 && b == (type)-1 ? (type)(0 - (wide)a) : (type)(a / b)); \
  } \
  static inline type csl_rem_##name(type a, type b, const struct pe_site *site) { \
    if (__builtin_expect(b == 0, 0)) csl_fail("division", "division by zero", site); \
    return (type)((type)-1 < 0 && b == (type)-1 ? 0 : (type)(a % b)); \
  } \
  static inline type csl_shl_##name(type a, uint64_t n) { \
    return n < 8 * sizeof a ? (type)((wide)a << n) : (type)0; \
  } \
  static inline type csl_shr_##name(type a, uint64_t n) { \
    return n < 8 * sizeof a ? (type)(a >> n) : (type)((type)-1 < 0 && a < 0 ? -1 : 0); \
  }
CSL_ARITHMETIC(int8_t, uint32_t, i8)
CSL_ARITHMETIC(int16_t, uint32_t, i16)
CSL_ARITHMETIC(int32_t, uint32_t, i32)
CSL_ARITHMETIC(int64_t, uint64_t, i64)
CSL_ARITHMETIC(uint8_t, uint32_t, u8)
CSL_ARITHMETIC(uint16_t, uint32_t, u16)
CSL_ARITHMETIC(uint32_t, uint32_t, u32)
CSL_ARITHMETIC(uint64_t, uint64_t, u64)

/* A float as an integer: towards zero, modulo the width. */
static inline int64_t csl_truncated(double a) {
  return a >= 0x1p63 && a < 0x1p64 ? (int64_t)(uint64_t)a : pe_truncated(a);
}

/* The same bits as another type of the same size. */
#define csl_bits(type, value) \
  __extension__({ \
    const __auto_type csl_from = (value); \
    type csl_to; \
    _Static_assert(sizeof csl_to == sizeof csl_from, "another width"); \
    __builtin_memcpy(&csl_to, &csl_from, sizeof csl_to); \
    csl_to; \
  })

/* ---- Descriptors with options that the constructors of csl.h do not have */

enum { CSL_NO_QUEUE = 0xff };

static inline csl_dsd csl_with_index(csl_dsd d) {
  d.index = 1;
  return d;
}
static inline csl_dsd csl_with_control(csl_dsd d) {
  d.control = 1;
  return d;
}

#endif
