/* What Python calls for CSL programs. Coordinates and sides as in api.c; side 5 is the host. */
#include <stdlib.h>
#include <string.h>

#include "csl_fabric.h"

EXPORT struct csl_fabric *csl_create(const struct machine *machine, int32_t architecture, int32_t registers, int32_t width,
                                     int32_t height, int32_t traces, int64_t max_cycles) {
  struct csl_fabric *csl = calloc(1, sizeof *csl);
  if (!csl) return NULL;
  struct fabric *f = &csl->fabric;
  fabric_begin(f, machine, width, height, traces, max_cycles);
  csl->architecture = architecture;
  csl->registers = registers < CSL_DSRS ? registers : CSL_DSRS;
  csl->routers = arena_take(f->arena, f->node_count * sizeof *csl->routers);
  for (uint32_t i = 0; i < f->node_count; i++) {
    f->nodes[i].router_due = NEVER;
    csl->routers[i].routes = arena_take(f->arena, CSL_COLORS * sizeof(struct csl_route));
  }
  return csl;
}

EXPORT void csl_destroy(struct csl_fabric *csl) {
  if (!csl) return;
  struct fabric *f = &csl->fabric;
  for (int i = 0; i < csl->source_count; i++) {
    free(csl->sources[i].words);
    free(csl->sources[i].control);
  }
  for (int i = 0; i < csl->sink_count; i++) {
    free(csl->sinks[i].words);
    free(csl->sinks[i].control);
    free(csl->sinks[i].cycle);
  }
  free(csl->sources);
  free(csl->sinks);
  free(csl->goals);
  free(csl->lines);
  free(f->edges);
  fabric_end(f);
}

static uint32_t number_at(const struct csl_fabric *f, int32_t x, int32_t y) { return (uint32_t)(y * f->fabric.width + x); }

EXPORT void csl_loose(struct csl_fabric *f) { f->loose = true; }

/* ---- Layout ---- */

EXPORT const char *csl_program_name(int64_t index) { return csl_programs[index] ? csl_programs[index]->name : NULL; }
EXPORT int64_t csl_program_bytes(int64_t index) { return (int64_t)csl_programs[index]->memory_bytes; }
EXPORT const char *csl_function_name(int64_t program, int64_t index) {
  const struct csl_function *f = csl_programs[program]->functions;
  for (; f && f->name && index; index--) f++;
  return f ? f->name : NULL;
}

EXPORT void csl_place(struct csl_fabric *f, int32_t x, int32_t y, int64_t program, int32_t seen_x, int32_t seen_y) {
  place_program(&f->fabric, number_at(f, x, y), csl_programs[program], seen_x, seen_y);
}

/* values: position, ring mode, pop mode, swap x, swap y, teardown, rx[4], tx[4], filter: kind, counts data, counts
 * control, counter, most, limit, low, high. */
EXPORT void csl_color(struct csl_fabric *f, int32_t x, int32_t y, int32_t color, const int32_t *v) {
  struct csl_route *r = &f->routers[number_at(f, x, y)].routes[color];
  *r = (struct csl_route){.configured = 1, .position = (uint8_t)v[0], .ring_mode = (uint8_t)v[1], .pop_mode = (uint8_t)v[2],
                          .swap_x = (uint8_t)v[3], .swap_y = (uint8_t)v[4], .teardown = (uint8_t)v[5]};
  for (int p = 0; p < CSL_POSITIONS; p++) {
    r->rx[p] = (uint8_t)v[6 + p];
    r->tx[p] = (uint8_t)v[10 + p];
  }
  r->filter = (struct csl_filter){(uint8_t)v[14], (uint8_t)v[15], (uint8_t)v[16], (uint32_t)v[17], (uint32_t)v[18],
                                  (uint32_t)v[19], (uint32_t)v[20], (uint32_t)v[21]};
}

/* ---- Memory; the caller has checked the addresses ---- */

EXPORT void csl_write(struct csl_fabric *f, int32_t x, int32_t y, int64_t address, int64_t bytes, const uint8_t *data,
                      const uint8_t *words_known) {
  struct core *c = f->fabric.nodes[number_at(f, x, y)].core;
  memcpy(c->pe.memory + address, data, (size_t)bytes);
  for (int64_t word = address / 2; word <= (address + bytes - 1) / 2 && bytes; word++)
    c->pe.shadow[word] = words_known ? words_known[word - address / 2] : 1;
}

EXPORT void csl_read(struct csl_fabric *f, int32_t x, int32_t y, int64_t address, int64_t bytes, uint8_t *data, uint8_t *known) {
  const struct core *c = f->fabric.nodes[number_at(f, x, y)].core;
  memcpy(data, c->pe.memory + address, (size_t)bytes);
  for (int64_t i = 0; i < bytes; i++) known[i] = c->pe.shadow[(address + i) / 2];
}

/* ---- The host's ends ---- */

static void *longer(void *list, int64_t count, size_t entry) {
  void *grown = realloc(list, (size_t)(count + 1) * entry);
  if (!grown) abort();
  return grown;
}

static struct csl_source *source_of(struct csl_fabric *f, uint32_t node, int side, int color) {
  for (int i = 0; i < f->source_count; i++)
    if (f->sources[i].node == node && f->sources[i].side == side && f->sources[i].color == color) return &f->sources[i];
  int i = f->source_count++;
  f->sources = longer(f->sources, i, sizeof *f->sources);
  f->fabric.edges = longer(f->fabric.edges, i, sizeof *f->fabric.edges);
  f->fabric.edges[i] = (struct edge){.due = NEVER, .node = node};
  f->fabric.edge_count = (uint32_t)f->source_count;
  struct ring *r = csl_input_of(&f->fabric, node, side, color);
  r->producer = (uint32_t)i;
  r->producer_kind = END_EDGE;
  f->sources[i] = (struct csl_source){.ring = r, .node = node, .side = (uint8_t)side, .color = (uint8_t)color};
  return &f->sources[i];
}

/* Appends words to what waits at a side of a PE; returns the number of the source. */
EXPORT int32_t csl_inject(struct csl_fabric *f, int32_t x, int32_t y, int32_t side, int32_t color, int64_t count,
                          const uint32_t *words, const uint8_t *control) {
  struct csl_source *s = source_of(f, number_at(f, x, y), side, color);
  if (s->next == s->count) s->next = s->count = 0;
  if (s->count + count > s->capacity) {
    s->capacity = 2 * (s->count + count);
    s->words = realloc(s->words, (size_t)s->capacity * sizeof *s->words);
    s->control = realloc(s->control, (size_t)s->capacity);
    if (!s->words || !s->control) abort();
  }
  memcpy(s->words + s->count, words, (size_t)count * sizeof *words);
  if (control) memcpy(s->control + s->count, control, (size_t)count);
  else memset(s->control + s->count, 0, (size_t)count);
  s->count += count;
  if (s->next < s->count) wake_edge(&f->fabric, (uint32_t)(s - f->sources), f->fabric.now + 1);
  return (int32_t)(s - f->sources);
}

/* Takes what leaves there; returns the number of the sink. */
EXPORT int32_t csl_sink(struct csl_fabric *f, int32_t x, int32_t y, int32_t side, int32_t color) {
  uint32_t node = number_at(f, x, y);
  struct csl_sink *old = csl_find_sink(f, node, side, color);
  if (old) return (int32_t)(old - f->sinks);
  struct csl_router *router = &f->routers[node];
  if (!router->sinks) {
    router->sinks = arena_take(f->fabric.arena, INPUT_SIDES * CSL_COLORS * sizeof *router->sinks);
    memset(router->sinks, -1, INPUT_SIDES * CSL_COLORS * sizeof *router->sinks);
  }
  int i = f->sink_count++;
  f->sinks = longer(f->sinks, i, sizeof *f->sinks);
  f->sinks[i] = (struct csl_sink){.node = node, .side = (uint8_t)side, .color = (uint8_t)color};
  router->sinks[side * CSL_COLORS + color] = i;
  if (side == SIDE_HOST) router->host_sinks |= 1u << color;
  wake_router(&f->fabric, node, f->fabric.now + 1);
  return i;
}

EXPORT int64_t csl_sink_count(const struct csl_fabric *f, int32_t sink) { return f->sinks[sink].count; }

/* Takes the first `count` words away, of those that have come. */
EXPORT void csl_take(struct csl_fabric *f, int32_t sink, int64_t count, uint32_t *words, uint8_t *control, int64_t *cycles) {
  struct csl_sink *s = &f->sinks[sink];
  memcpy(words, s->words, (size_t)count * sizeof *words);
  memcpy(control, s->control, (size_t)count);
  memcpy(cycles, s->cycle, (size_t)count * sizeof *cycles);
  s->count -= count;
  memmove(s->words, s->words + count, (size_t)s->count * sizeof *words);
  memmove(s->control, s->control + count, (size_t)s->count);
  memmove(s->cycle, s->cycle + count, (size_t)s->count * sizeof *cycles);
}

/* Appends a command; false if the program has no such function. */
EXPORT int32_t csl_call(struct csl_fabric *f, int32_t x, int32_t y, const char *name, int64_t count, const uint32_t *words) {
  struct csl_core *c = csl_core_at(&f->fabric, number_at(f, x, y));
  const struct csl_function *function = c->program->functions;
  while (function && function->name && strcmp(function->name, name)) function++;
  if (!function || !function->name) return 0;
  struct csl_call *call = arena_take(f->fabric.arena, sizeof *call);
  call->function = function;
  memcpy(call->words, words, (size_t)(count < 16 ? count : 16) * sizeof *words);
  *c->last_call = call;
  c->last_call = &call->next;
  if (c->core.state == CORE_FREE) wake_core(&c->core, later(f->fabric.now + 1, c->core.pe.clock));
  return 1;
}

/* ---- Running ---- */

static bool goal_is_met(struct csl_fabric *f, const struct csl_goal *g) {
  if (g->kind == GOAL_COLLECTED) return f->sinks[g->node_or_index].count >= g->count;
  if (g->kind == GOAL_INJECTED) return f->sources[g->node_or_index].next == f->sources[g->node_or_index].count;
  struct csl_core *c = csl_core_at(&f->fabric, (uint32_t)g->node_or_index);
  return !c || (!c->calls && !c->command_runs);
}

static bool goals_are_met(struct csl_fabric *f) {
  if (f->goals_changed)
    while (f->goal_next < f->goal_count && goal_is_met(f, &f->goals[f->goal_next])) f->goal_next++;
  f->goals_changed = false;
  return f->goal_next == f->goal_count;
}

/* What run() is to reach: each (kind, node or index, count). None: until nothing happens any more. */
EXPORT void csl_goals(struct csl_fabric *f, int64_t count, const struct csl_goal *goals) {
  free(f->goals);
  f->goals = malloc((size_t)(count + 1) * sizeof *goals);
  if (!f->goals) abort();
  memcpy(f->goals, goals, (size_t)count * sizeof *goals);
  f->goal_count = (int32_t)count;
  f->goal_next = 0;
  f->goals_changed = true;
}

static bool too_long(struct csl_fabric *f) {
  if (!over_limit(&f->fabric)) return false;
  csl_report_details(f);
  return true;
}

static int32_t come_to_rest(struct csl_fabric *f) {
  f->goals_changed = true;
  if (goals_are_met(f)) return RUN_ENDED;
  csl_report(f, false);
  return RUN_FAILED;
}

/* Simulates for about so many seconds, to the goals or to a failure. */
EXPORT int32_t csl_run_for(struct csl_fabric *f, double for_seconds) {
  double until = seconds() + for_seconds;
  struct fabric *g = &f->fabric;
  start_all(f);
  bool to_rest = !f->goal_count;
  while (!g->failure.present) {
    for (int i = 0; i < STEPS_BETWEEN_CLOCKS; i++) {
      if (!to_rest && goals_are_met(f)) return RUN_ENDED;
      int64_t at = next_cycle(g);
      if (at == NEVER) return come_to_rest(f);
      visit_cycle(g, at);
      if (g->failure.present || too_long(f)) return RUN_FAILED;
    }
    if (seconds() > until) return RUN_GOES_ON;
  }
  return RUN_FAILED;
}

/* Simulates what happens in the next so many cycles, for about so many seconds; RUN_ENDED when that is done. */
EXPORT int32_t csl_let_pass(struct csl_fabric *f, int64_t until_cycle, double for_seconds) {
  double until = seconds() + for_seconds;
  struct fabric *g = &f->fabric;
  start_all(f);
  while (!g->failure.present) {
    for (int i = 0; i < STEPS_BETWEEN_CLOCKS; i++) {
      int64_t at = next_cycle(g);
      if (at == NEVER || at > until_cycle) return RUN_ENDED;
      visit_cycle(g, at);
      if (g->failure.present || too_long(f)) return RUN_FAILED;
    }
    if (seconds() > until) return RUN_GOES_ON;
  }
  return RUN_FAILED;
}

/* When all has come to rest: what is left, as a failure. */
EXPORT void csl_finish(struct csl_fabric *f) { csl_report(f, true); }

EXPORT int64_t csl_line_count(const struct csl_fabric *f) { return f->line_count; }
EXPORT const char *csl_line(const struct csl_fabric *f, int64_t i, int64_t *cycle, int32_t *x, int32_t *y) {
  *cycle = f->lines[i].cycle;
  *x = f->lines[i].x;
  *y = f->lines[i].y;
  return f->lines[i].text;
}

EXPORT int64_t csl_operation_count(void) { return CSL_OPERATIONS; }
EXPORT const char *csl_operation_name(int64_t i) { return csl_table[i].name; }
