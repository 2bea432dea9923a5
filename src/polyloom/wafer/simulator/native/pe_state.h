/* The PE that runs now, as all emitted C sees it (pe.h of layers, csl.h of CSL programs): its memory, which bytes of it
 * are initialised, its clock, and what scalar work costs. */
#ifndef POLYLOOM_PE_STATE_H
#define POLYLOOM_PE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pe_costs { /* cycles of scalar work, from the machine model */
  int32_t operation, load, store, multiplication, iteration, branch;
};

struct pe_work {
  int operations, loads, stores, multiplications, iterations, branches;
};

struct pe {
  unsigned char *memory;      /* the role's struct memory */
  uint8_t *shadow;            /* one byte per 16-bit word of it: 1 = initialised, 0 = poison */
  size_t memory_bytes;
  const struct pe_costs *costs;
  int64_t clock;              /* cycle that the main thread has reached */
  int64_t limit;              /* cycle at which the task counts as endless */
  int64_t scalar_operations;
  int32_t x, y;
#ifdef PE_COUNTED /* a build that compares what a task does with what its cost() declares */
  struct pe_work done, declared;
  const void *loaded[16]; /* since the last cost(): a block loads an element once, however often it names it */
  int loaded_count;
#endif
};

extern __attribute__((visibility("hidden"))) _Thread_local struct pe *self;

#ifdef PE_COUNTED
#define PE_COUNT(what) (self->done.what++)
static inline void pe_count_load(const void *address) {
  for (int i = 0; i < self->loaded_count; i++)
    if (self->loaded[i] == address) return;
  if (self->loaded_count < 16) self->loaded[self->loaded_count++] = address;
  PE_COUNT(loads);
}
#else
#define PE_COUNT(what) ((void)0)
#define pe_count_load(address) ((void)0)
#endif

#define PE_X (self->x)
#define PE_Y (self->y)

struct pe_site { /* a place in the emitted text, for messages */
  const char *file;
  int line;
  const char *text;
};

#ifdef PE_LINES /* a build that knows at each cycle which line of the emitted C is at work */
void pe_at(const char *file, int line); /* file: NULL where a role has one only */
#define PE_LINE() pe_at(PE_FILE, __LINE__)
#else
#define PE_LINE() ((void)0)
#endif

#define PE_HERE(what) \
  static const struct pe_site pe_here = {__FILE__, __LINE__, what}; \
  PE_LINE()
#define PE_DO(what, call) __extension__({ PE_HERE(what); call; })

_Noreturn void pe_fail_poison(const struct pe_site *site);
_Noreturn void pe_fail_bounds(const struct pe_site *site);
_Noreturn void pe_fail_endless(void);

static inline size_t pe_offset(const void *address, size_t bytes, const struct pe_site *site) {
  size_t offset = (size_t)((const unsigned char *)address - self->memory);
  if (__builtin_expect(offset + bytes > self->memory_bytes || offset >= self->memory_bytes, 0)) pe_fail_bounds(site);
  return offset;
}

static inline void pe_check_load(const void *address, size_t bytes, const struct pe_site *site) {
  const uint8_t *shadow = self->shadow + pe_offset(address, bytes, site) / 2;
  pe_count_load(address);
  if (__builtin_expect(!(shadow[0] & shadow[(bytes - 1) / 2]), 0)) pe_fail_poison(site);
}

static inline void pe_mark_stored(const void *address, size_t bytes, const struct pe_site *site) {
  uint8_t *shadow = self->shadow + pe_offset(address, bytes, site) / 2;
  shadow[0] = shadow[(bytes - 1) / 2] = 1;
  PE_COUNT(stores);
}

__attribute__((always_inline)) static inline void pe_cost(struct pe_work work) {
  const struct pe_costs *cycles = self->costs;
#ifdef PE_COUNTED
  self->loaded_count = 0;
  self->declared.loads += work.loads;
  self->declared.stores += work.stores;
  self->declared.branches += work.branches;
#endif
  self->scalar_operations += work.operations + work.multiplications;
  self->clock += (int64_t)work.operations * cycles->operation + (int64_t)work.loads * cycles->load +
                 (int64_t)work.stores * cycles->store + (int64_t)work.multiplications * cycles->multiplication +
                 (int64_t)work.iterations * cycles->iteration + (int64_t)work.branches * cycles->branch;
  if (__builtin_expect(self->clock > self->limit, 0)) pe_fail_endless();
}

#endif
