/* Operand descriptors: what a role configures, which bytes they may cover, and walking along them. */
#include <stdlib.h>

#include "fabric.h"

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

void pe_configure(operand o, size_t dims, const int32_t *sizes, size_t strides_dims, const int32_t *strides,
                  const struct pe_site *site) {
  struct core *c = this_core();
  struct descriptor *d = descriptor_of(c, o, site);
  if (dims != strides_dims || dims < 1 || dims > MOST_DIMENSIONS)
    fail_task(c, "operand", site, "%s: %zu sizes and %zu strides; an operand has 1 to 4 of both", site->text, dims,
              strides_dims);
  int32_t base = d->kind == OPERAND_MEMORY ? d->base : -1;
  *d = (struct descriptor){.kind = OPERAND_MEMORY, .type = d->type, .base = base, .elements = 1, .high = 1,
                           .array_low = d->array_low, .array_high = d->array_high,
                           .only_stride = dims == 1 ? strides[0] : INT32_MIN};
  for (size_t i = 0; i < dims; i++) {
    if (sizes[i] < 0 || sizes[i] > 0xffff) fail_task(c, "operand", site, "%s: a size of %d", site->text, sizes[i]);
    d->elements *= (uint32_t)sizes[i];
    if (sizes[i] == 0) continue;
    add_dimension(d, (uint32_t)sizes[i], strides[i]);
    add_reach(d, (uint32_t)sizes[i], strides[i]);
  }
  c->pe.clock += c->fabric->machine.configure;
}

void pe_set_length(operand o, int64_t length, const struct pe_site *site) {
  struct core *c = this_core();
  struct descriptor *d = descriptor_of(c, o, site);
  if (!c->fabric->machine.set_length)
    fail_task(c, "operand", site, "%s: the machine cannot set a length without the rest of a descriptor", site->text);
  if (d->kind != OPERAND_MEMORY || d->only_stride == INT32_MIN)
    fail_task(c, "operand", site, "%s: the operand is not configured as one of one dimension", site->text);
  if (length < 0 || length > 0xffff) fail_task(c, "operand", site, "%s: a length of %lld", site->text, (long long)length);
  d->elements = (uint32_t)length;
  d->dims = 0;
  d->low = 0;
  d->high = 1;
  if (length) {
    add_dimension(d, (uint32_t)length, d->only_stride);
    add_reach(d, (uint32_t)length, d->only_stride);
  }
  c->pe.clock += c->fabric->machine.set_length;
}

void pe_configure_fabric(operand o, bool output, bool pairs, int queue, int64_t elements, const struct pe_site *site) {
  struct core *c = this_core();
  struct descriptor *d = descriptor_of(c, o, site);
  int32_t queues = output ? c->fabric->machine.output_queues : c->fabric->machine.input_queues;
  if (queue < 0 || queue >= queues)
    fail_task(c, "too-many-queues", site, "there is no %s queue %d: the machine has %d", output ? "output" : "input", queue,
              queues);
  if (elements < 0 || elements > UINT32_MAX)
    fail_task(c, "operand", site, "%s: %lld elements", site->text, (long long)elements);
  *d = (struct descriptor){.kind = output ? OPERAND_OUTPUT : OPERAND_INPUT, .pairs = pairs, .queue = (uint8_t)queue,
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
  d->base = (int32_t)offset;
  d->type = (uint8_t)type;
  c->pe.clock += c->fabric->machine.set_base_address;
}

/* ---- Checks ---- */

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
