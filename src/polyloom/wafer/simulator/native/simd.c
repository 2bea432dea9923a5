/* SIMD instructions on operands in memory (nests.c), with the descriptors of a layer. */
#include "fabric.h"

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
  if (f->trace) trace_add_at(f, TRACE_SIMD, c->number, 0, site, ins->name, began, c->pe.clock);
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
