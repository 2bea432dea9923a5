/* Operands of DSD operations: DSD values and how they change, registers, and what an operand means in execution. */
#include <string.h>

#include "csl_fabric.h"

/* ---- DSD values ---- */

csl_dsd csl_mem1d(csl_address base, int bytes, uint16_t extent, int stride, int offset) {
  return (csl_dsd){.kind = CSL_MEMORY, .dims = 1, .bytes = (uint8_t)bytes, .base = base, .offset = offset, .extent = {extent},
                   .stride = {(int16_t)stride}};
}

csl_dsd csl_mem4d(csl_address base, int bytes, int dims, const uint16_t *extent, const int16_t *stride, int offset) {
  csl_dsd d = {.kind = CSL_MEMORY, .dims = (uint8_t)dims, .mem4d = 1, .bytes = (uint8_t)bytes, .base = base, .offset = offset};
  for (int i = 0; i < dims && i < MOST_DIMENSIONS; i++) {
    d.extent[i] = extent[i];
    d.stride[i] = stride[i];
  }
  return d;
}

static const struct csl_array *array_at(const struct csl_program *p, int64_t address) {
  const struct csl_array *a = p->arrays;
  for (; a && a->bytes; a++)
    if (a->address <= address && address < (int64_t)a->address + a->bytes) return a;
  return NULL;
}

/* States the bounds of a DSD that says none, before its base moves away from the array that it lies in. */
static void keep_bounds(const struct csl_core *c, csl_dsd *d) {
  if (d->high) return;
  const struct csl_array *a = array_at(c->program, d->base);
  d->low = a ? a->address : 0;
  d->high = a ? a->address + a->bytes : (uint32_t)c->core.pe.memory_bytes;
}

static void need_memory(struct csl_core *c, const csl_dsd *d, const char *what, const struct pe_site *site) {
  if (d->kind != CSL_MEMORY) fail_task(&c->core, "operand", site, "%s of a DSD that is not in memory", what);
}

csl_dsd csl_increment_dsd_offset(csl_dsd d, int elements, int bytes_of_type, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  need_memory(c, &d, "@increment_dsd_offset", site);
  keep_bounds(c, &d);
  d.base += elements * bytes_of_type;
  c->core.pe.clock += c->core.fabric->machine.set_base_address;
  return d;
}

csl_dsd csl_set_dsd_base_addr(csl_dsd d, csl_address base, int bytes_of_type, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  (void)bytes_of_type;
  need_memory(c, &d, "@set_dsd_base_addr", site);
  d.base = base;
  d.offset = 0;
  d.low = d.high = 0;
  c->core.pe.clock += c->core.fabric->machine.set_base_address;
  return d;
}

csl_dsd csl_set_dsd_length(csl_dsd d, int64_t length, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  if (d.mem4d) fail_task(&c->core, "operand", site, "@set_dsd_length of a mem4d_dsd");
  if (length < 0 || length > 0xffff) fail_task(&c->core, "operand", site, "@set_dsd_length: %lld", (long long)length);
  d.extent[0] = (uint16_t)length;
  c->core.pe.clock += c->core.fabric->machine.set_length;
  return d;
}

csl_dsd csl_set_dsd_stride(csl_dsd d, int64_t stride, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  need_memory(c, &d, "@set_dsd_stride", site);
  if (d.mem4d) fail_task(&c->core, "operand", site, "@set_dsd_stride of a mem4d_dsd");
  if (stride < -128 || stride > 127)
    fail_task(&c->core, "operand", site, "@set_dsd_stride: %lld does not fit into 8 bits", (long long)stride);
  d.stride[0] = (int16_t)stride;
  c->core.pe.clock += c->core.fabric->machine.set_length;
  return d;
}

/* ---- Registers ---- */

static struct csl_dsr *register_of(struct csl_core *c, int file, int number, const struct pe_site *site) {
  static const char *const names[] = {"dest", "src0", "src1"};
  if (number < 0 || number >= csl_of(c->core.fabric)->registers)
    fail_task(&c->core, "operand", site, "there is no DSR %d in file %s: the machine has %d", number, names[file],
              csl_of(c->core.fabric)->registers);
  return &c->registers[file][number];
}

void csl_load_to_dsr(enum csl_dsr_file file, int number, csl_dsd d, bool save_address, const csl_options *options,
                     const struct pe_site *site) {
  struct csl_core *c = this_csl();
  struct csl_dsr *r = register_of(c, file, number, site);
  if (file == CSL_DEST && d.kind == CSL_FABIN) fail_task(&c->core, "operand", site, "a fabin DSD in a dsr_dest");
  if (file != CSL_DEST && d.kind == CSL_FABOUT) fail_task(&c->core, "operand", site, "a fabout DSD in a source DSR");
  *r = (struct csl_dsr){.value = d, .loaded = true, .save_address = save_address};
  if (options) r->options = *options;
  c->core.pe.clock += c->core.fabric->machine.configure;
}

static struct csl_dsr *loaded(struct csl_core *c, int file, int number, const struct pe_site *site) {
  struct csl_dsr *r = register_of(c, file, number, site);
  if (!r->loaded) fail_task(&c->core, "operand", site, "%s: a DSR that nothing was loaded into", site->text);
  return r;
}

csl_dsd csl_dsr_value(enum csl_dsr_file file, int number, const struct pe_site *site) {
  return loaded(this_csl(), file, number, site)->value;
}

/* ---- In execution ---- */

static uint32_t elements_of(const csl_dsd *d) {
  uint32_t n = 1;
  for (int i = 0; i < (d->dims ? d->dims : 1); i++) n *= d->extent[i];
  return n;
}

static bool endless(const csl_dsd *d) { return d->kind != CSL_MEMORY && d->extent[0] == CSL_INFINITE; }

static const char *array_name(const struct csl_core *c, uint32_t low) {
  const struct csl_array *a = array_at(c->program, low);
  return a ? a->name : "its memory";
}

void csl_set_memory(struct csl_core *c, struct csl_place_of *p, const csl_dsd *d, int bytes, const csl_options *options,
                    const struct instruction *ins, const struct pe_site *site) {
  struct descriptor *n = &p->nest;
  const char *what = ins ? ins->name : "@map";
  if (d->dims < 1 || d->dims > MOST_DIMENSIONS) fail_task(&c->core, "operand", site, "%s: an operand is not set", what);
  *n = (struct descriptor){.kind = OPERAND_MEMORY, .type = bytes == 2 ? PE_TYPE_int16_t : PE_TYPE_int32_t, .elements = 1,
                           .high = 1, .only_stride = INT32_MIN};
  int64_t first = d->base + (int64_t)d->offset * bytes;
  csl_dsd bounded = *d;
  keep_bounds(c, &bounded);
  n->array_low = bounded.low;
  n->array_high = bounded.high;
  if (d->index) {
    if (!options->has_index) fail_task(&c->core, "operand", site, "%s: an operand has wavelet_index_offset, but there is no .index", what);
    first += 2 * (int64_t)options->index;
  }
  for (int i = 0; i < d->dims; i++) {
    n->elements *= d->extent[i];
    if (!d->extent[i]) continue;
    add_dimension(n, d->extent[i], d->stride[i]);
    add_reach(n, d->extent[i], d->stride[i]);
  }
  n->base = (int32_t)first;
  n->only_stride = d->dims == 1 ? d->stride[0] : INT32_MIN;
  if (first % 2) fail_task(&c->core, "operand", site, "%s: an operand begins at an odd address", what);
  p->place = PLACE_MEMORY;
  p->end = first + (int64_t)d->extent[0] * d->stride[0] * bytes;
  cursor_start(&p->cursor, n);
}

/* The elements that an operation of this length uses of an operand must lie in its variable. */
static void check_reach(struct csl_core *c, struct csl_place_of *p, uint32_t length, const struct pe_site *site) {
  struct descriptor *n = &p->nest;
  if (p->place != PLACE_MEMORY || !n->elements || !length) return;
  if (n->only_stride != INT32_MIN && length < n->elements) {
    n->low = 0;
    n->high = 1;
    add_reach(n, length, n->only_stride);
  }
  int64_t low = n->base + (int64_t)n->low * p->bytes, high = n->base + (int64_t)n->high * p->bytes;
  if (csl_of(c->core.fabric)->loose) {
    n->array_low = 0;
    n->array_high = (uint32_t)c->core.pe.memory_bytes;
  }
  if (low < n->array_low || high > n->array_high)
    fail_task(&c->core, "out-of-bounds", site, "%s: an operand covers the bytes %lld to %lld, %s has %u to %u", site->text,
              (long long)low, (long long)high, array_name(c, n->array_low), n->array_low, n->array_high);
}

/* An address of a scalar: a place that does not move. */
static void set_address(struct csl_core *c, struct csl_place_of *p, uint32_t address, int bytes, const struct pe_site *site) {
  csl_dsd d = {.kind = CSL_MEMORY, .dims = 1, .base = (int32_t)address, .extent = {1}, .stride = {0}};
  csl_set_memory(c, p, &d, bytes, &(csl_options){0}, NULL, site);
}

static void check_color_and_queue(struct csl_core *c, struct csl_place_of *p, const csl_dsd *d, const struct pe_site *site) {
  int queues = d->kind == CSL_FABIN ? c->core.fabric->machine.input_queues : c->core.fabric->machine.output_queues;
  const char *what = d->kind == CSL_FABIN ? "input" : "output";
  if (d->queue >= queues)
    fail_task(&c->core, "too-many-queues", site, "there is no %s queue %d: the machine has %d", what, d->queue, queues);
  p->queue = d->queue;
  p->pack = d->pack > 1 && p->bytes == 2 ? 2 : 1;
  if (d->kind == CSL_FABIN) {
    if (c->input_color[d->queue] == NO_COLOR)
      fail_task(&c->core, "unbound-queue", site, "input queue %d has no color: @initialize_queue is missing", d->queue);
    return;
  }
  p->color = is_wse3(c) || d->color == CSL_QUEUE_COLOR ? c->output_color[d->queue] : d->color;
  if (p->color >= CSL_COLORS)
    fail_task(&c->core, "unbound-queue", site, "output queue %d has no color: @initialize_queue is missing", d->queue);
  p->control = d->control;
}

/* What an operand of `bytes` an element is in this operation; returns its elements, UINT32_MAX: any number. */
static uint32_t set_place(struct csl_core *c, struct csl_place_of *p, const csl_operand *o, int bytes, bool destination,
                          const csl_options *options, const struct instruction *ins, const struct pe_site *site) {
  *p = (struct csl_place_of){.bytes = (uint8_t)bytes};
  const csl_dsd *d = &o->dsd;
  if (o->kind == CSL_OF_SCALAR) {
    if (destination) fail_task(&c->core, "operand", site, "%s: the destination is a scalar", site->text);
    p->scalar = o->bits;
    return UINT32_MAX;
  }
  if (o->kind == CSL_OF_ADDRESS) {
    set_address(c, p, o->bits, bytes, site);
    return UINT32_MAX;
  }
  if (o->kind == CSL_OF_DSR) {
    struct csl_dsr *r = loaded(c, o->file, o->number, site);
    if (destination != (o->file == CSL_DEST))
      fail_task(&c->core, "operand", site, "%s: a DSR of the wrong file", site->text);
    if (r->save_address && r->value.kind == CSL_MEMORY) p->register_ = r;
    d = &r->value;
  }
  switch (d->kind) {
    case CSL_MEMORY: csl_set_memory(c, p, d, bytes, options, ins, site); return p->nest.elements;
    case CSL_FABIN: case CSL_FABOUT:
      if ((d->kind == CSL_FABOUT) != destination)
        fail_task(&c->core, "operand", site, "%s: %s", site->text, destination ? "the destination is a fabin DSD" : "a source is a fabout DSD");
      p->place = destination ? PLACE_OUTPUT : PLACE_INPUT;
      check_color_and_queue(c, p, d, site);
      break;
    case CSL_FIFO:
      p->place = PLACE_FIFO;
      p->queue = d->queue;
      return UINT32_MAX;
    default: fail_task(&c->core, "operand", site, "%s: an operand is not set", site->text);
  }
  return endless(d) ? UINT32_MAX : elements_of(d);
}

/* An address goes on from where this operation ended. */
static void keep_address(struct csl_place_of *p) {
  if (!p->register_) return;
  p->register_->value.low = p->nest.array_low;
  p->register_->value.high = p->nest.array_high;
  p->register_->value.base = (int32_t)p->end;
  p->register_->value.offset = 0;
}
