/* What our text of the CSL libraries calls by @native and csl.h has in another form: with the place of the call, or more
 * than one result. Included after csl.h. */
#ifndef POLYLOOM_CSL_LIBRARY_H
#define POLYLOOM_CSL_LIBRARY_H

#include "csl.h"

static inline uint16_t csl_read_config(uint16_t word_address) {
  return PE_DO("the registers of configuration", csl_get_config(word_address, &pe_here));
}
static inline void csl_write_config(uint16_t word_address, uint16_t value) {
  PE_DO("the registers of configuration", csl_set_config(word_address, value, &pe_here));
}
static inline void csl_give_input_queue_color(int queue, int color) {
  PE_DO("encode_input_queue", csl_set_input_queue_color(queue, color, &pe_here));
}
static inline void csl_give_output_queue_color(int queue, int color) {
  PE_DO("encode_output_queue", csl_set_output_queue_color(queue, color, &pe_here));
}
/* The low 48 bits of the cycles since `zero`, as three words at an address. */
static inline void csl_store_timestamp(uint16_t address, uint64_t zero) {
  uint64_t now = (uint64_t)csl_timestamp() - zero;
  for (int k = 0; k < 3; k++)
    PE_DO("get_timestamp", csl_write_u16((uint16_t)(address + 2 * k), (uint16_t)(now >> 16 * k), &pe_here));
}

/* Two characters of a text, the first in the low half; 0 beyond its end. */
static inline uint16_t csl_string_word(const char *text, uint16_t word) {
  size_t length = __builtin_strlen(text), at = 2u * word;
  uint16_t low = at < length ? (uint8_t)text[at] : 0, high = at + 1 < length ? (uint8_t)text[at + 1] : 0;
  return (uint16_t)(low | high << 8);
}

#endif
