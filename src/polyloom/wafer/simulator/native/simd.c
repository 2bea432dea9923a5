/* SIMD instructions: the table, operand descriptors, execution in memory, and what it costs. */
#include <stdlib.h>

#include "fabric.h"

/* ---- The table: each body, as a loop over a run of elements ---- */

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

uint32_t type_bytes(uint8_t type) { return type == PE_TYPE_half || type == PE_TYPE_int16_t ? 2 : 4; }

/* ---- Descriptors ---- */

struct array_entry { const struct role *role; uint32_t low, high; const char *name; };
struct array_table { uint32_t count; struct array_entry entries[1024]; };

struct array_table *array_table_create(void) { return calloc(1, sizeof(struct array_table)); }

struct descriptor *descriptor_of(struct core *c, operand o, const struct pe_site *site) {
  if (o.number >= c->role->operands)
    fail_task(c, "operand", site, "%s: the role has %d operand descriptors, numbered from 0", site->text,
              c->role->operands);
  return &c->descriptors[o.number];
}

/* Every PE of a role says the same; the first one is noted. */
void pe_array(const void *address, size_t bytes, const char *name) {
  struct core *c = this_core();
  struct array_table *t = c->fabric->arrays;
  uint32_t low = (uint32_t)((const unsigned char *)address - c->pe.memory);
  for (uint32_t i = 0; i < t->count; i++)
    if (t->entries[i].role == c->role && t->entries[i].low == low) return;
  if (t->count == sizeof t->entries / sizeof t->entries[0]) return;
  t->entries[t->count++] = (struct array_entry){c->role, low, low + (uint32_t)bytes, name};
}

/* Leaves out dimensions of size 1 and joins those that are contiguous. */
static void add_dimension(struct descriptor *d, uint32_t size, int32_t stride) {
  if (size == 1) return;
  uint32_t last = d->dims - 1u;
  if (d->dims && d->strides[last] == (int64_t)stride * size) {
    d->sizes[last] *= size;
    d->strides[last] = stride;
    return;
  }
  d->sizes[d->dims] = size;
  d->strides[d->dims++] = stride;
}

static void add_reach(struct descriptor *d, uint32_t size, int32_t stride) {
  int64_t reach = (int64_t)stride * (size - 1);
  if (reach < 0) d->low += (int32_t)reach;
  else d->high += (int32_t)reach;
}

void pe_configure(operand o, size_t dims, const int32_t *sizes, size_t strides_dims, const int32_t *strides,
                  const struct pe_site *site) {
  struct core *c = this_core();
  struct descriptor *d = descriptor_of(c, o, site);
  if (dims != strides_dims || dims < 1 || dims > MOST_DIMENSIONS)
    fail_task(c, "operand", site, "%s: %zu sizes and %zu strides; an operand has 1 to 4 of both", site->text, dims,
              strides_dims);
  int64_t base = d->kind == OPERAND_MEMORY ? d->base : -1;
  *d = (struct descriptor){.kind = OPERAND_MEMORY, .type = d->type, .base = base, .elements = 1, .high = 1,
                           .array_low = d->array_low, .array_high = d->array_high};
  for (size_t i = 0; i < dims; i++) {
    if (sizes[i] < 0 || sizes[i] > 0xffff) fail_task(c, "operand", site, "%s: a size of %d", site->text, sizes[i]);
    d->elements *= (uint32_t)sizes[i];
    if (sizes[i] == 0) continue;
    add_dimension(d, (uint32_t)sizes[i], strides[i]);
    add_reach(d, (uint32_t)sizes[i], strides[i]);
  }
  c->pe.clock += c->fabric->machine.configure;
}

void pe_configure_fabric(operand o, bool output, int queue, int64_t elements, const struct pe_site *site) {
  struct core *c = this_core();
  struct descriptor *d = descriptor_of(c, o, site);
  int32_t queues = output ? c->fabric->machine.output_queues : c->fabric->machine.input_queues;
  if (queue < 0 || queue >= queues)
    fail_task(c, "too-many-queues", site, "there is no %s queue %d: the machine has %d", output ? "output" : "input", queue,
              queues);
  if (elements < 0 || elements > UINT32_MAX)
    fail_task(c, "operand", site, "%s: %lld elements", site->text, (long long)elements);
  *d = (struct descriptor){.kind = output ? OPERAND_OUTPUT : OPERAND_INPUT, .queue = (uint8_t)queue,
                           .elements = (uint32_t)elements, .base = -1};
  c->pe.clock += c->fabric->machine.configure;
}

static void find_array(struct core *c, struct descriptor *d, uint32_t offset) {
  const struct array_table *t = c->fabric->arrays;
  d->array_low = 0;
  d->array_high = (uint32_t)c->pe.memory_bytes;
  for (uint32_t i = 0; i < t->count; i++)
    if (t->entries[i].role == c->role && t->entries[i].low <= offset && offset < t->entries[i].high) {
      d->array_low = t->entries[i].low;
      d->array_high = t->entries[i].high;
      return;
    }
}

void pe_set_base_address(operand o, const void *address, enum pe_type type, const struct pe_site *site) {
  struct core *c = this_core();
  struct descriptor *d = descriptor_of(c, o, site);
  if (d->kind != OPERAND_MEMORY)
    fail_task(c, "operand", site, "%s: the operand is not configured as one in memory", site->text);
  int64_t offset = (const unsigned char *)address - c->pe.memory;
  if (offset < 0 || offset > (int64_t)c->pe.memory_bytes)
    fail_task(c, "out-of-bounds", site, "%s: the address lies outside the memory of the role", site->text);
  if (d->base < 0 || offset < d->array_low || offset >= d->array_high || !d->array_high) find_array(c, d, (uint32_t)offset);
  d->base = offset;
  d->type = (uint8_t)type;
  c->pe.clock += c->fabric->machine.set_base_address;
}

/* ---- Cursors ---- */

void cursor_start(struct cursor *k, const struct descriptor *d) {
  *k = (struct cursor){.nest = d, .offset = d->base};
}

static long cursor_stride(const struct cursor *k) {
  return k->nest->dims ? (long)k->nest->strides[k->nest->dims - 1] : 0;
}

static uint32_t cursor_row_left(const struct cursor *k) {
  int last = k->nest->dims - 1;
  return last < 0 ? 1 : k->nest->sizes[last] - k->at[last];
}

/* Moves n elements on, at most to the end of the row. */
static void cursor_advance(struct cursor *k, uint32_t n) {
  const struct descriptor *d = k->nest;
  int32_t bytes = (int32_t)type_bytes(d->type);
  int i = d->dims - 1;
  if (i < 0) return;
  k->offset += (int64_t)n * d->strides[i] * bytes;
  k->at[i] += n;
  for (; i > 0 && k->at[i] == d->sizes[i]; i--) {
    k->offset += ((int64_t)d->strides[i - 1] - (int64_t)d->sizes[i] * d->strides[i]) * bytes;
    k->at[i] = 0;
    k->at[i - 1]++;
  }
}

void cursor_next(struct cursor *k) { cursor_advance(k, 1); }

/* ---- Execution in memory ---- */

struct operand_run { /* one operand of an instruction in memory; a scalar stands still */
  struct cursor cursor;
  bool scalar;
  uint32_t value;
};

void check_operand(struct core *c, const struct instruction *ins, const struct descriptor *d, uint8_t type,
                          uint32_t elements, const struct pe_site *site) {
  if (d->kind == OPERAND_UNSET) fail_task(c, "operand", site, "%s: an operand is not configured", ins->name);
  if (d->base < 0) fail_task(c, "operand", site, "%s: an operand has no base address", ins->name);
  if (d->type != type)
    fail_task(c, "operand", site, "%s: an operand points to %s where the instruction takes %s", ins->name, tag_text(d->type),
              tag_text(type));
  if (d->elements != elements)
    fail_task(c, "operand", site, "%s: one operand has %u elements, another %u", ins->name, d->elements, elements);
  if (!elements) return;
  int64_t bytes = type_bytes(type), low = d->base + d->low * bytes, high = d->base + d->high * bytes;
  if (low < (int64_t)d->array_low || high > (int64_t)d->array_high)
    fail_task(c, "out-of-bounds", site, "%s: an operand covers the bytes %lld to %lld, its array has %u to %u", ins->name,
              (long long)low, (long long)high, d->array_low, d->array_high);
}

void check_scalar(struct core *c, const struct instruction *ins, uint8_t given, uint8_t type,
                         const struct pe_site *site) {
  if (given != type)
    fail_task(c, "operand", site, "%s: a scalar is %s where the instruction takes %s", ins->name, tag_text(given),
              tag_text(type));
}

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
static int stride_limit(long stride, long words) {
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

/* One run of elements with constant strides; returns its cycles. */
static int64_t run_row(struct core *c, const struct instruction *ins, int width, struct operand_run *to,
                       struct operand_run *from, long n) {
  unsigned char *pointers[MOST_SOURCES];
  long steps[MOST_SOURCES], words[MOST_SOURCES];
  int64_t moving[MOST_SOURCES];
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
    if (s) moving[moving_count++] = from[k].cursor.offset;
    limit = stride_limit(s, bytes / 2);
    if (limit < rate) rate = limit;
  }
  ins->run(c->pe.memory + to->cursor.offset, stride * to_bytes, pointers, steps, n);
  run_shadow(c, ins, to, from, words, stride * to_bytes / 2, n);
  int64_t cycles = (n + rate - 1) / rate;
  return banks_collide(moving, moving_count) ? 2 * cycles : cycles;
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

static void invoke_in_memory(struct core *c, enum pe_instruction name, struct descriptor *d, const struct pe_source *sources,
                             const struct pe_site *site) {
  const struct instruction *ins = &instructions[name];
  struct fabric *f = c->fabric;
  struct operand_run to, from[MOST_SOURCES];
  check_operand(c, ins, d, ins->to_type, d->elements, site);
  cursor_start(&to.cursor, d);
  for (int k = 0; k < ins->sources; k++) {
    from[k].scalar = sources[k].type != 0;
    from[k].value = sources[k].bits;
    if (from[k].scalar) {
      check_scalar(c, ins, sources[k].type, ins->from_type[k], site);
      continue;
    }
    const struct descriptor *s = descriptor_of(c, (operand){sources[k].number}, site);
    check_operand(c, ins, s, ins->from_type[k], d->elements, site);
    cursor_start(&from[k].cursor, s);
  }
  int64_t began = c->pe.clock;
  c->pe.clock += f->machine.simd_launch + run_nest(c, ins, f->machine.widths[name], d->elements, &to, from);
  f->statistics.simd_operations += d->elements;
  f->statistics.simd_instructions++;
  if (f->trace) trace_add(f, TRACE_SIMD, c->number, 0, ins->name, began, c->pe.clock);
  if (c->pe.clock > c->pe.limit) pe_fail_endless();
}

static bool has_fabric_operand(struct core *c, const struct instruction *ins, const struct descriptor *d,
                               const struct pe_source *sources, const struct pe_site *site) {
  if (d->kind >= OPERAND_INPUT) return true;
  for (int k = 0; k < ins->sources; k++)
    if (!sources[k].type && descriptor_of(c, (operand){sources[k].number}, site)->kind >= OPERAND_INPUT) return true;
  return false;
}

void pe_invoke_simd(enum pe_instruction name, operand destination, const struct pe_source *sources,
                    const struct pe_site *site) {
  struct core *c = this_core();
  struct descriptor *d = descriptor_of(c, destination, site);
  if (has_fabric_operand(c, &instructions[name], d, sources, site)) run_with_fabric(c, name, destination, sources, site);
  else invoke_in_memory(c, name, d, sources, site);
}
