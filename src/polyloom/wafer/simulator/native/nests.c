/* SIMD instructions over nests of elements in memory: what they do, and what that costs. */
#include "fabric.h"

struct operand_run { /* one operand of an instruction in memory; a scalar stands still */
  struct cursor cursor;
  bool scalar;
  uint32_t value;
};

/* Poison spreads from the sources to the destination, element by element and in order. */
static void run_shadow(struct core *c, const struct instruction *ins, const struct operand_run *to,
                       const struct operand_run *from, const long *words, long to_words, long n) {
  uint8_t *t = c->pe.shadow + to->cursor.offset / 2;
  const uint8_t *s[MOST_SOURCES];
  long step[MOST_SOURCES];
  int width[MOST_SOURCES], count = 0, to_width = (int)type_bytes(ins->to_type) / 2;
  for (int k = 0; k < ins->sources; k++) {
    if (from[k].scalar) continue;
    s[count] = c->pe.shadow + from[k].cursor.offset / 2;
    step[count] = words[k];
    width[count++] = (int)type_bytes(ins->from_type[k]) / 2;
  }
  for (long i = 0; i < n; i++) {
    uint8_t known = 1;
    for (int k = 0; k < count; k++) known &= s[k][i * step[k]] & s[k][i * step[k] + width[k] - 1];
    t[i * to_words] = t[i * to_words + to_width - 1] = known;
  }
}

/* Elements a cycle that the stride of an operand in memory allows. Source: SDK appendix, in 16-bit words. */
int stride_limit(long stride, long words) {
  if (stride == 0 || stride == 1) return 1 << 20;
  switch (((stride * words) % 8 + 8) % 8) {
    case 0: return 1;
    case 1: case 4: case 7: return 2;
    default: return 1 << 20;
  }
}

/* Two moving operands are read in one cycle only from different banks (mod 4) of 16-bit words. */
static bool banks_collide(const int64_t *offsets, int count) {
  for (int a = 0; a < count; a++)
    for (int b = a + 1; b < count; b++)
      if (offsets[a] / 2 % 4 == offsets[b] / 2 % 4) return true;
  return false;
}

/* Where the destination's elements are all in one bank, so that writing meets reading one of the sources. */
static bool writes_into_bank_read(int64_t to, long to_words, const int64_t *offsets, const long *words, int count) {
  if (!to_words || to_words % 8) return false;
  for (int a = 0; a < count; a++)
    if (words[a] % 8 == 0 && offsets[a] / 2 % 4 == to / 2 % 4) return true;
  return false;
}

/* One run of elements with constant strides; returns its cycles. */
static int64_t run_row(struct core *c, const struct instruction *ins, int width, struct operand_run *to,
                       struct operand_run *from, long n) {
  unsigned char *pointers[MOST_SOURCES];
  long steps[MOST_SOURCES], words[MOST_SOURCES];
  int64_t moving[MOST_SOURCES];
  long moving_words[MOST_SOURCES];
  int moving_count = 0;
  long stride = cursor_stride(&to->cursor), to_bytes = type_bytes(ins->to_type);
  int rate = width, limit = stride_limit(stride, to_bytes / 2);
  if (limit < rate) rate = limit;
  for (int k = 0; k < ins->sources; k++) {
    long bytes = type_bytes(ins->from_type[k]);
    pointers[k] = (unsigned char *)&from[k].value;
    steps[k] = words[k] = 0;
    if (from[k].scalar) continue;
    long s = cursor_stride(&from[k].cursor);
    pointers[k] = c->pe.memory + from[k].cursor.offset;
    steps[k] = s * bytes;
    words[k] = s * bytes / 2;
    if (s) {
      moving_words[moving_count] = words[k];
      moving[moving_count++] = from[k].cursor.offset;
    }
    limit = stride_limit(s, bytes / 2);
    if (limit < rate) rate = limit;
  }
  ins->run(c->pe.memory + to->cursor.offset, stride * to_bytes, pointers, steps, n);
  run_shadow(c, ins, to, from, words, stride * to_bytes / 2, n);
  int64_t cycles = (n + rate - 1) / rate;
  bool meet = banks_collide(moving, moving_count) ||
              writes_into_bank_read(to->cursor.offset, stride * to_bytes / 2, moving, moving_words, moving_count);
  return meet ? c->fabric->machine.same_bank_cycles * cycles : cycles;
}

static int64_t run_nest(struct core *c, const struct instruction *ins, int width, uint32_t elements, struct operand_run *to,
                        struct operand_run *from) {
  int64_t cycles = 0;
  while (elements) {
    uint32_t n = cursor_row_left(&to->cursor);
    for (int k = 0; k < ins->sources; k++)
      if (!from[k].scalar && cursor_row_left(&from[k].cursor) < n) n = cursor_row_left(&from[k].cursor);
    cycles += run_row(c, ins, width, to, from, n);
    cursor_advance(&to->cursor, n);
    for (int k = 0; k < ins->sources; k++)
      if (!from[k].scalar) cursor_advance(&from[k].cursor, n);
    elements -= n;
  }
  return cycles;
}
