/* What a task of a CSL program may do beside DSD operations: memory outside of variables, tasks, queues, routers, the log. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csl_fabric.h"

/* ---- Memory ---- */

static _Noreturn void outside(csl_address address, int bytes, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  fail_task(&c->core, "out-of-bounds", site, "%s: %d bytes at address %u; the PE's program has %zu bytes", site->text, bytes,
            address, c->core.pe.memory_bytes);
}

uint64_t csl_read_outside(csl_address address, int bytes, const struct pe_site *site) {
  if (bytes != 2 || address % 2 || address / 2 < CSL_REGISTERS) outside(address, bytes, site);
  return csl_get_config(address / 2, site);
}

void csl_write_outside(csl_address address, int bytes, uint64_t value, const struct pe_site *site) {
  if (bytes != 2 || address % 2 || address / 2 < CSL_REGISTERS) outside(address, bytes, site);
  csl_set_config(address / 2, (uint16_t)value, site);
}

_Noreturn void csl_fail_index(int64_t index, int64_t length, const struct pe_site *site) {
  fail_task(this_core(), "out-of-bounds", site, "the index %s is %lld, the array has %lld elements", site->text, (long long)index,
            (long long)length);
}

_Noreturn void csl_fail(const char *kind, const char *message, const struct pe_site *site) {
  fail_task(this_core(), kind, site, "%s", message);
}

void csl_copy(csl_address to, csl_address from, size_t bytes, const struct pe_site *site) {
  if (!csl_inside(to, bytes)) outside(to, (int)bytes, site);
  if (!csl_inside(from, bytes)) outside(from, (int)bytes, site);
  memmove(self->memory + to, self->memory + from, bytes);
  for (size_t i = 0; i < bytes; i++)
    if (!self->shadow[(from + i) / 2]) self->shadow[(to + i) / 2] = 0;
    else if (i == 0 || (to + i) % 2 == 0) self->shadow[(to + i) / 2] = 1;
}

void csl_fill_zero(csl_address to, size_t bytes, const struct pe_site *site) {
  if (!csl_inside(to, bytes)) outside(to, (int)bytes, site);
  memset(self->memory + to, 0, bytes);
  for (size_t i = 0; i < bytes; i++) self->shadow[(to + i) / 2] = 1;
}

void *csl_state_of_pe(void) { return this_csl()->state; }
int64_t csl_number(size_t index) { return this_csl()->program->numbers[index]; }
double csl_float(size_t index) { return this_csl()->program->floats[index]; }

/* ---- Tasks ---- */

static void check_id(struct csl_core *c, int id, int count, const struct pe_site *site) {
  if (id < 0 || id >= count) fail_task(&c->core, "unknown-task", site, "there is no task id %d", id);
}

void csl_activate(int id, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  check_id(c, id, 32, site);
  if (!c->local[id]) fail_task(&c->core, "unknown-task", site, "@activate of id %d, to which no local task is bound", id);
  c->activated |= 1u << id;
}

void csl_block(int id, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  check_id(c, id, CSL_IDS, site);
  c->blocked |= 1ull << id;
}

void csl_unblock(int id, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  check_id(c, id, CSL_IDS, site);
  c->blocked &= ~(1ull << id);
}

/* ---- Queues ---- */

static void check_queue(struct csl_core *c, bool output, int queue, const struct pe_site *site) {
  int count = output ? c->core.fabric->machine.output_queues : c->core.fabric->machine.input_queues;
  if (queue < 0 || queue >= count)
    fail_task(&c->core, "too-many-queues", site, "there is no %s queue %d: the machine has %d", output ? "output" : "input", queue, count);
}

void csl_queue_flush(bool output, int queue, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  if (!is_wse3(c)) fail_task(&c->core, "operand", site, "wse2 has no @queue_flush");
  check_queue(c, output, queue, site);
  if (output) c->flush_out |= 1u << queue;
  else c->flush_in |= 1u << queue;
}

bool csl_queue_flush_pending(bool output, int queue) {
  struct csl_core *c = this_csl();
  return (output ? c->flushed_out : c->flushed_in) >> queue & 1;
}

void csl_queue_flush_exit(bool output, int queue) {
  struct csl_core *c = this_csl();
  if (output) c->flushed_out &= ~(1u << queue);
  else c->flushed_in &= ~(1u << queue);
}

void csl_set_input_queue_color(int queue, int color, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  check_queue(c, false, queue, site);
  if (!c->inputs[queue]) fail_task(&c->core, "unbound-queue", site, "input queue %d was not initialised", queue);
  c->input_color[queue] = (uint8_t)color;
  csl_routes_changed(c->core.fabric, c->core.number);
}

void csl_set_output_queue_color(int queue, int color, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  check_queue(c, true, queue, site);
  c->output_color[queue] = (uint8_t)color;
}

bool csl_output_drained(int queue) {
  struct csl_core *c = this_csl();
  if (queue < 0 || queue >= CSL_QUEUES || !c->outputs[queue]) return true;
  csl_sleep_until_clock(c);
  for (int i = 0; i < c->outputs[queue]->capacity; i++)
    if (c->outputs[queue]->slots[i].full) return false;
  return true;
}

/* ---- Routers ---- */

static struct csl_route *route_of_color(struct csl_core *c, int color) {
  if (color < 0 || color >= CSL_COLORS) fail_task(&c->core, "color", NULL, "there is no color %d", color);
  return &c->router->routes[color];
}

bool csl_teardown_pending(int color) {
  struct csl_core *c = this_csl();
  return route_of_color(c, color)->teardown;
}

void csl_teardown_exit(int color) {
  struct csl_core *c = this_csl();
  route_of_color(c, color)->teardown = 0;
  csl_routes_changed(c->core.fabric, c->core.number);
}

enum { ROUTE_REGISTERS = 0x7f20, SWITCH_REGISTERS = 0x7f40, PRIORITY_REGISTERS = 0x7f60, INVALID_POSITION = 5 };
static const uint8_t SIDE_OF_BIT[5] = {SIDE_WEST, SIDE_EAST, SIDE_SOUTH, SIDE_NORTH, SIDE_RAMP};

static uint16_t as_register(uint8_t sides) {
  uint16_t bits = 0;
  for (int i = 0; i < 5; i++)
    if (sides >> SIDE_OF_BIT[i] & 1) bits |= (uint16_t)(1u << i);
  return bits;
}

static uint8_t as_sides(unsigned bits) {
  uint8_t sides = 0;
  for (int i = 0; i < 5; i++)
    if (bits >> i & 1) sides |= (uint8_t)(1u << SIDE_OF_BIT[i]);
  return sides;
}

static uint16_t route_register(const struct csl_route *r) {
  return (uint16_t)(as_register(r->tx[0]) | as_register(r->rx[0]) << 5 | r->swap_y << 10 | r->swap_x << 11 | r->pop_mode << 12 |
                    r->teardown << 14);
}

/* What a position changes against the one before: a side that wavelets come from, or one that they go to. */
static uint16_t position_field(const struct csl_route *r, int p) {
  if (r->has_fields) return r->field[p];
  if (!(r->rx[p] | r->tx[p])) return INVALID_POSITION;
  bool input = r->rx[p] != r->rx[p - 1] || r->tx[p] == r->tx[p - 1];
  uint16_t bits = as_register(input ? r->rx[p] : r->tx[p]);
  return (uint16_t)((bits ? __builtin_ctz(bits) : INVALID_POSITION) | (input ? 8 : 0));
}

static uint16_t switch_register(const struct csl_route *r) {
  uint16_t v = (uint16_t)(r->ring_mode << 12 | r->position << 13);
  for (int p = 1; p < CSL_POSITIONS; p++) v |= (uint16_t)(position_field(r, p) << 4 * (p - 1));
  return v;
}

static void set_switch_register(struct csl_route *r, uint16_t v) {
  uint8_t rx = r->rx[0], tx = r->tx[0];
  r->ring_mode = v >> 12 & 1;
  r->position = v >> 13 & 3;
  r->has_fields = true;
  for (int p = 1; p < CSL_POSITIONS; p++) {
    unsigned field = v >> 4 * (p - 1) & 15, side = field & 7;
    r->field[p] = (uint8_t)field;
    r->rx[p] = r->tx[p] = 0;
    if (side >= INVALID_POSITION) continue;
    if (field & 8) rx = as_sides(1u << side);
    else tx = as_sides(1u << side);
    r->rx[p] = rx;
    r->tx[p] = tx;
  }
}

/* A change of position 0 holds for what the other positions take from it. */
static void set_route_register(struct csl_route *r, uint16_t v) {
  uint16_t switches = switch_register(r);
  r->tx[0] = as_sides(v & 31);
  r->rx[0] = as_sides(v >> 5 & 31);
  r->configured = r->tx[0] && r->rx[0];
  r->swap_y = v >> 10 & 1;
  r->swap_x = v >> 11 & 1;
  r->pop_mode = v >> 12 & 3;
  r->teardown = v >> 14 & 1;
  set_switch_register(r, switches);
}

static struct csl_route *route_of_register(struct csl_core *c, int address, bool *is_switch, const struct pe_site *site) {
  *is_switch = address >= SWITCH_REGISTERS;
  int color = address - (*is_switch ? SWITCH_REGISTERS : ROUTE_REGISTERS);
  if (color < 0 || color >= CSL_COLORS)
    fail_task(&c->core, "register", site, "the register at word address 0x%x is not modelled", address);
  return &c->router->routes[color];
}

static bool is_priority(int address) { return address >= PRIORITY_REGISTERS && address < PRIORITY_REGISTERS + CSL_IDS; }

uint16_t csl_get_config(int address, const struct pe_site *site) {
  bool is_switch;
  if (is_priority(address)) return !(this_csl()->low_priority >> (address - PRIORITY_REGISTERS) & 1);
  struct csl_route *r = route_of_register(this_csl(), address, &is_switch, site);
  return is_switch ? switch_register(r) : route_register(r);
}

void csl_set_config(int address, uint16_t value, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  bool is_switch;
  if (is_priority(address)) {
    uint64_t bit = 1ull << (address - PRIORITY_REGISTERS);
    c->low_priority = value ? c->low_priority & ~bit : c->low_priority | bit;
    return;
  }
  struct csl_route *r = route_of_register(c, address, &is_switch, site);
  if (is_switch) set_switch_register(r, value);
  else set_route_register(r, value);
  csl_routes_changed(c->core.fabric, c->core.number);
}

/* ---- The host ---- */

int64_t csl_timestamp(void) { return self->clock; }
int csl_x(void) { return self->x; }
int csl_y(void) { return self->y; }

void csl_command_done(void) {
  struct csl_core *c = this_csl();
  if (!c->command_runs) fail_task(&c->core, "command", NULL, "unblock_cmd_stream, but no command of the host runs");
  c->command_runs = false;
  csl_of(c->core.fabric)->goals_changed = true;
}

static void end_line(struct csl_core *c) {
  struct csl_fabric *f = csl_of(c->core.fabric);
  if (f->line_count == f->line_capacity) {
    f->line_capacity = f->line_capacity ? 2 * f->line_capacity : 64;
    f->lines = realloc(f->lines, (size_t)f->line_capacity * sizeof *f->lines);
    if (!f->lines) abort();
  }
  struct csl_line *l = &f->lines[f->line_count++];
  *l = (struct csl_line){.cycle = self->clock, .x = self->x, .y = self->y};
  snprintf(l->text, sizeof l->text, "%s", c->print);
  c->printed = 0;
  c->print[0] = 0;
}

void csl_print(const char *format, ...) {
  struct csl_core *c = this_csl();
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  for (const char *p = text; *p; p++) {
    if (*p == '\n' || c->printed == (int)sizeof c->print - 1) end_line(c);
    if (*p == '\n') continue;
    c->print[c->printed++] = *p;
    c->print[c->printed] = 0;
  }
}
