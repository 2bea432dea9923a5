/* Failures: what went wrong, where and when; and what is left when nothing happens any more. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fabric.h"

static void copy_text(char *to, size_t size, const char *text) { snprintf(to, size, "%s", text ? text : ""); }

const char *color_text(int color) {
  static const char *const names[MOST_COLORS] = {
      "color 0",  "color 1",  "color 2",  "color 3",  "color 4",  "color 5",  "color 6",  "color 7",
      "color 8",  "color 9",  "color 10", "color 11", "color 12", "color 13", "color 14", "color 15",
      "color 16", "color 17", "color 18", "color 19", "color 20", "color 21", "color 22", "color 23",
      "color 24", "color 25", "color 26", "color 27", "color 28", "color 29", "color 30", "color 31"};
  return names[color];
}

const char *tag_text(uint8_t tag) {
  switch (tag) {
    case PE_TYPE_half: return "half";
    case PE_TYPE_float: return "float";
    case PE_TYPE_int16_t: return "int16_t";
    case PE_TYPE_int32_t: return "int32_t";
    case TAG_PAIR | PE_TYPE_half: return "two halves";
    case TAG_PAIR | PE_TYPE_int16_t: return "two int16_t";
    case TAG_SPARSE | PE_TYPE_half: return "an (index, half) pair";
    case TAG_SPARSE | PE_TYPE_int16_t: return "an (index, int16_t) pair";
    case TAG_CONTROL: return "an end of chunk";
    default: return "a wavelet from outside";
  }
}

/* Whether a failure here and now comes before the one that is noted. */
static bool counts(const struct fabric *f, uint32_t node, int64_t cycle) {
  return !f->failure.present || (f->failure.cycle == cycle && node < f->failure_node);
}

static void note(struct fabric *f, uint32_t node, int64_t cycle, const char *kind, const struct pe_site *site,
                 const char *format, va_list arguments) {
  struct failure *e = &f->failure;
  const struct core *c = f->nodes[node].core;
  memset(e, 0, sizeof *e);
  f->failure_node = node;
  e->present = 1;
  e->cycle = cycle;
  e->x = node_x(f, node);
  e->y = node_y(f, node);
  copy_text(e->kind, sizeof e->kind, kind);
  vsnprintf(e->message, sizeof e->message, format, arguments);
  if (c && c->coroutine) copy_text(e->task, sizeof e->task, c->job.name);
  if (!site) return;
  copy_text(e->file, sizeof e->file, site->file);
  e->line = site->line;
}

void fail_node(struct fabric *f, uint32_t node, const char *kind, const struct pe_site *site, const char *format, ...) {
  if (!counts(f, node, f->now)) return;
  va_list arguments;
  va_start(arguments, format);
  note(f, node, f->now, kind, site, format, arguments);
  va_end(arguments);
}

/* The order of failures goes by the cycle of the visit; the message names the cycle that the task had reached. */
_Noreturn void fail_task(struct core *c, const char *kind, const struct pe_site *site, const char *format, ...) {
  struct fabric *f = c->fabric;
  if (counts(f, c->number, f->now)) {
    va_list arguments;
    va_start(arguments, format);
    note(f, c->number, f->now, kind, site, format, arguments);
    va_end(arguments);
  }
  c->state = CORE_FAILED;
  coroutine_abandon(c);
}

void fail_setup(struct fabric *f, int x, int y, const char *kind, const char *format, ...) {
  if (f->failure.present) return;
  va_list arguments;
  va_start(arguments, format);
  note(f, (uint32_t)(y * f->width + x), 0, kind, NULL, format, arguments);
  va_end(arguments);
}

/* ---- What emitted code calls by itself ---- */

_Noreturn void pe_fail_poison(const struct pe_site *site) {
  fail_task(this_core(), "poison", site, "%s: the element is not initialised", site->text);
}

_Noreturn void pe_fail_bounds(const struct pe_site *site) {
  fail_task(this_core(), "out-of-bounds", site, "%s: the address lies outside the memory of the role", site->text);
}

_Noreturn void pe_fail_endless(void) {
  struct core *c = this_core();
  if (c->pe.clock > c->fabric->max_cycles)
    fail_task(c, "cycle-limit", NULL, "the limit of %lld cycles is reached", (long long)c->fabric->max_cycles);
  fail_task(c, "endless", NULL, "the task runs for more than 2^32 cycles");
}

/* What the bounds sanitizer of gcc and clang hands over. */
struct ubsan_type { uint16_t kind, info; char name[1]; };
struct ubsan_bounds { struct { const char *file; uint32_t line, column; } place; struct ubsan_type *array, *index; };

static void out_of_bounds(const struct ubsan_bounds *data, uintptr_t index) {
  struct pe_site site = {data->place.file, (int)data->place.line, ""};
  int unused = 64 - (1 << (data->index->info >> 1));
  long long value = unused > 0 ? (long long)((uint64_t)index << unused) : (long long)index;
  if (unused > 0) value = data->index->info & 1 ? value >> unused : (long long)((uint64_t)value >> unused);
  fail_task(this_core(), "out-of-bounds", &site, "the index %lld is outside of %s", value, data->array->name);
}

__attribute__((visibility("hidden"))) void __ubsan_handle_out_of_bounds(void *data, uintptr_t index) {
  out_of_bounds(data, index);
}
__attribute__((visibility("hidden"))) void __ubsan_handle_out_of_bounds_abort(void *data, uintptr_t index) {
  out_of_bounds(data, index);
}

/* ---- The end ---- */

enum { MOST_LINES = 20 };

struct report { char *text; size_t size, used; int lines; };

static void line(struct report *r, const char *format, ...) {
  if (r->lines++ >= MOST_LINES) return;
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(r->text + r->used, r->size - r->used, format, arguments);
  va_end(arguments);
  if (n > 0) r->used = r->used + (size_t)n < r->size ? r->used + (size_t)n : r->size - 1;
}

static void close_report(struct report *r) {
  if (r->lines > MOST_LINES)
    snprintf(r->text + r->used, r->size - r->used, "and %d more\n", r->lines - MOST_LINES);
}

static int wavelets_in(const struct ring *r) {
  int count = 0;
  for (int i = 0; i < r->capacity; i++) count += r->slots[i].full;
  return count;
}

static void report_stalled_task(struct report *r, const struct core *c) {
  static const char *const what[] = {[CORE_WAITS_INPUT] = "an element of input", [CORE_WAITS_OUTPUT] = "room in output"};
  const struct pe_site *s = c->waits_site;
  if (c->state == CORE_WAITS_STREAM) {
    line(r, "PE(%d, %d): task %s waits for its %s (%s:%d)\n", node_x(c->fabric, c->number), node_y(c->fabric, c->number), c->job.name, s->text, s->file, s->line);
    return;
  }
  const struct ring *ring = c->state == CORE_WAITS_INPUT ? &c->inputs[c->waits_queue].ring : c->outputs[c->waits_queue];
  line(r, "PE(%d, %d): task %s waits for %s queue %d, color %d, since cycle %lld: %s (%s:%d)\n", node_x(c->fabric, c->number), node_y(c->fabric, c->number), c->job.name,
       what[c->state], c->waits_queue, ring->color, (long long)c->waits_since, s->text, s->file, s->line);
}

static void report_stream(struct report *r, const struct core *c, const struct stream *s) {
  bool input = s->input >= 0 && !ring_head(&c->inputs[s->input].ring)->full;
  int queue = input ? s->input : s->output;
  if (queue < 0) return;
  const struct ring *ring = input ? &c->inputs[queue].ring : c->outputs[queue];
  line(r, "PE(%d, %d): %s of %s waits for %s queue %d, color %d; %u elements to come (%s:%d)\n", node_x(c->fabric, c->number), node_y(c->fabric, c->number),
       s->instruction->name, s->task < 0 ? c->job.name : "a microthread", input ? "an element of input" : "room in output",
       queue, ring->color, s->left, s->site->file, s->site->line);
}

static int report_waiting(struct fabric *f, struct report *r) {
  for (uint32_t i = 0; i < f->node_count; i++) {
    const struct core *c = f->nodes[i].core;
    if (!c) continue;
    if (c->state >= CORE_WAITS_INPUT && c->state <= CORE_WAITS_STREAM) report_stalled_task(r, c);
    for (int k = 0; k < c->stream_count; k++) report_stream(r, c, c->streams[k]);
  }
  return r->lines;
}

static const char *const SIDES_OUTSIDE[] = {"north", "south", "east", "west"};

static int64_t ends_taken(const struct sink *s) {
  int64_t ends = 0;
  for (int64_t i = 0; i < s->count; i++) ends += s->control[i];
  return ends;
}

static void report_ports(struct fabric *f, struct report *r) {
  for (uint32_t i = 0; i < f->source_count; i++) {
    const struct source *s = f->sources[i];
    if (s->next < s->count)
      line(r, "source %s %d, color %d: %lld of %lld wavelets not taken\n", SIDES_OUTSIDE[s->side], s->position, s->color,
           (long long)(s->count - s->next), (long long)s->count);
  }
  for (uint32_t i = 0; i < f->sink_count; i++) {
    const struct sink *s = f->sinks[i];
    const int64_t ends = s->expected < 0 ? ends_taken(s) : 0;
    if (s->expected < 0 && ends != -s->expected)
      line(r, "sink %s %d, color %d: %lld ends of chunk came, %lld are expected\n", SIDES_OUTSIDE[s->side], s->position,
           s->color, (long long)ends, (long long)-s->expected);
    if (s->expected >= 0 && s->count != s->expected)
      line(r, "sink %s %d, color %d: %lld wavelets came, %lld are expected\n", SIDES_OUTSIDE[s->side], s->position, s->color,
           (long long)s->count, (long long)s->expected);
  }
}

static void report_left_in(struct report *r, const struct fabric *f, uint32_t node, const struct ring *ring, int queue,
                           const char *note_) {
  int count = wavelets_in(ring);
  if (!count) return;
  if (queue < 0) line(r, "PE(%d, %d): %d wavelets of color %d in the router\n", node_x(f, node), node_y(f, node), count, ring->color);
  else line(r, "PE(%d, %d): %d wavelets of color %d in input queue %d%s\n", node_x(f, node), node_y(f, node), count, ring->color,
            queue, note_);
}

static int report_left(struct fabric *f, struct report *r) {
  int before = r->lines;
  for (uint32_t i = 0; i < f->node_count; i++) {
    const struct node *n = &f->nodes[i];
    for (int q = 0; n->core && q < f->machine.input_queues; q++)
      if (n->core->inputs[q].ring.capacity)
        report_left_in(r, f, i, &n->core->inputs[q].ring, q, n->core->unblocked >> q & 1 ? "" : " (blocked)");
    for (int k = 0; k < n->route_count; k++) report_left_in(r, f, i, &n->routes[k].ring, -1, "");
  }
  return r->lines - before;
}

void report_end(struct fabric *f) {
  struct failure *e = &f->failure;
  if (e->present) return;
  struct report r = {e->details, sizeof e->details, 0, 0};
  int waiting = report_waiting(f, &r);
  report_ports(f, &r);
  int before_left = r.lines;
  int left = report_left(f, &r);
  if (!r.lines) return;
  close_report(&r);
  bool stuck = waiting || before_left;
  e->present = 1;
  e->cycle = f->now;
  e->x = e->y = -1;
  copy_text(e->kind, sizeof e->kind, stuck ? "deadlock" : "data-left");
  if (stuck) snprintf(e->message, sizeof e->message, "nothing can happen any more, but the program has not ended");
  else snprintf(e->message, sizeof e->message, "the program has ended, but %d queues and routers hold wavelets", left);
}
