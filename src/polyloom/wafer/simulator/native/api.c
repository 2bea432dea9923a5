/* What Python calls. Coordinates: x grows to the east, y to the south; sides: 0 north, 1 south, 2 east, 3 west. */
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

EXPORT struct fabric *fabric_create(const struct machine *machine, int32_t width, int32_t height, int32_t invocations,
                                    int32_t traces, int64_t max_cycles) {
  struct fabric *f = calloc(1, sizeof *f);
  if (!f) return NULL;
  fabric_begin(f, machine, width, height, traces, max_cycles);
  f->invocations = invocations;
  f->arrays = array_table_create();
  lay_out(f);
  return f;
}

EXPORT void fabric_destroy(struct fabric *f) {
  if (!f) return;
  team_destroy(f);
  for (uint32_t i = 0; i < f->sink_count; i++) {
    free(f->sinks[i]->payload);
    free(f->sinks[i]->control);
    free(f->sinks[i]->cycle);
  }
  free(f->sinks);
  free(f->sources);
  free(f->arrays);
  fabric_end(f);
}

EXPORT void fabric_use_threads(struct fabric *f, int32_t threads) { f->threads = threads; }

EXPORT int64_t fabric_programs(const struct fabric *f) {
  int64_t programs = 0;
  for (uint32_t i = 0; i < f->node_count; i++) programs += f->nodes[i].core != NULL;
  return programs;
}

/* ---- Memory ---- */

static struct core *core_at(struct fabric *f, int32_t x, int32_t y) {
  if (x < 0 || y < 0 || x >= f->width || y >= f->height) return NULL;
  return f->nodes[(uint32_t)(y * f->width + x)].core;
}

EXPORT void fabric_memory_bytes(struct fabric *f, int64_t n, const int32_t *xs, const int32_t *ys, int64_t *bytes) {
  for (int64_t i = 0; i < n; i++) {
    const struct core *c = core_at(f, xs[i], ys[i]);
    bytes[i] = c ? (int64_t)c->pe.memory_bytes : 0;
  }
}

/* The caller has checked that the bytes lie in the memory of every PE. */
EXPORT void fabric_load(struct fabric *f, int64_t n, const int32_t *xs, const int32_t *ys, int64_t offset, int64_t bytes,
                        const uint8_t *data, const uint8_t *mask, int64_t element_bytes) {
  int64_t elements = bytes / element_bytes;
  for (int64_t i = 0; i < n; i++) {
    struct core *c = core_at(f, xs[i], ys[i]);
    for (int64_t k = 0; k < elements; k++) {
      if (!mask[i * elements + k]) continue;
      int64_t at = offset + k * element_bytes;
      memcpy(c->pe.memory + at, data + i * bytes + k * element_bytes, (size_t)element_bytes);
      memset(c->pe.shadow + at / 2, 1, (size_t)(element_bytes + 1) / 2);
    }
  }
}

EXPORT void fabric_read(struct fabric *f, int64_t n, const int32_t *xs, const int32_t *ys, int64_t offset, int64_t bytes,
                        uint8_t *data, uint8_t *initialised) {
  for (int64_t i = 0; i < n; i++) {
    const struct core *c = core_at(f, xs[i], ys[i]);
    memcpy(data + i * bytes, c->pe.memory + offset, (size_t)bytes);
    memcpy(initialised + i * (bytes / 2), c->pe.shadow + offset / 2, (size_t)(bytes / 2));
  }
}

/* ---- Ports ---- */

static void *append(void *list, uint32_t count, void *entry) {
  void **grown = realloc(list, (count + 1) * sizeof *grown);
  if (!grown) abort();
  grown[count] = entry;
  return grown;
}

EXPORT void fabric_source(struct fabric *f, int32_t side, int32_t position, int32_t color, int64_t count,
                          const uint32_t *payload, const uint8_t *control) {
  struct source *s = arena_take(f->arena, sizeof *s);
  uint32_t *words = arena_take(f->arena, (size_t)count * sizeof *words);
  uint8_t *flags = arena_take(f->arena, (size_t)count);
  memcpy(words, payload, (size_t)count * sizeof *words);
  memcpy(flags, control, (size_t)count);
  *s = (struct source){side, position, color, NULL, words, flags, count, 0};
  f->sources = append(f->sources, f->source_count++, s);
}

EXPORT void fabric_sink(struct fabric *f, int32_t side, int32_t position, int32_t color, int64_t expected) {
  struct sink *s = arena_take(f->arena, sizeof *s);
  *s = (struct sink){.side = side, .position = position, .color = color, .expected = expected};
  f->sinks = append(f->sinks, f->sink_count++, s);
}

static const struct sink *find_sink(const struct fabric *f, int32_t side, int32_t position, int32_t color) {
  for (uint32_t i = 0; i < f->sink_count; i++)
    if (f->sinks[i]->side == side && f->sinks[i]->position == position && f->sinks[i]->color == color) return f->sinks[i];
  return NULL;
}

EXPORT int64_t fabric_received_count(const struct fabric *f, int32_t side, int32_t position, int32_t color) {
  const struct sink *s = find_sink(f, side, position, color);
  return s ? s->count : -1;
}

EXPORT void fabric_received(const struct fabric *f, int32_t side, int32_t position, int32_t color, uint32_t *payload,
                            uint8_t *control, int64_t *cycle) {
  const struct sink *s = find_sink(f, side, position, color);
  if (!s || !s->count) return;
  memcpy(payload, s->payload, (size_t)s->count * sizeof *payload);
  memcpy(control, s->control, (size_t)s->count);
  memcpy(cycle, s->cycle, (size_t)s->count * sizeof *cycle);
}

/* ---- Running ---- */

static void link_once(struct fabric *f) {
  if (f->linked) return;
  f->linked = true;
  if (!f->failure.present) link_rings(f, f->threads);
}

/* The next cycle with an event; false when there is none, or none is to be. */
static bool alone_step(struct fabric *f) {
  int64_t at = next_cycle(f);
  if (at == NEVER) return false;
  visit_cycle(f, at);
  return !f->failure.present && !over_limit(f);
}

static bool step(struct fabric *f) { return f->team ? team_step(f) : alone_step(f); }

static int32_t finish(struct fabric *f) {
  if (f->team) team_join(f);
  if (!over_limit(f)) report_end(f);
  return f->failure.present ? RUN_FAILED : RUN_ENDED;
}

/* Simulates for about so many seconds; the same thread must call it until it does not return RUN_GOES_ON. */
EXPORT int32_t fabric_run(struct fabric *f, double for_seconds) {
  double until = seconds() + for_seconds;
  link_once(f);
  if (f->failure.present) return RUN_FAILED;
  if (f->team) team_begin(f);
  for (;;) {
    int64_t stop_at = f->statistics.events + EVENTS_BETWEEN_CLOCKS;
    for (int i = 0; i < STEPS_BETWEEN_CLOCKS && f->statistics.events < stop_at; i++)
      if (!step(f)) return finish(f);
    if (seconds() > until) return RUN_GOES_ON;
  }
}

EXPORT int64_t fabric_events(const struct fabric *f) { return f->team ? team_events(f) : f->statistics.events; }

/* ---- Tables ---- */

EXPORT int64_t fabric_instruction_count(void) { return instruction_count; }
EXPORT const char *fabric_instruction_name(int64_t i) { return instructions[i].name; }
EXPORT int64_t fabric_struct_bytes(int32_t which) {
  static const size_t bytes[] = {sizeof(struct machine), sizeof(struct failure), sizeof(struct statistics),
                                 sizeof(struct line_use), sizeof(struct profile), sizeof(struct trace_event)};
  return (int64_t)bytes[which];
}
