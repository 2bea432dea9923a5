/* Where a fabric begins and ends: what layers and CSL programs have in common. */
#include <stdlib.h>

#include "fabric.h"

/* Sets up a zeroed fabric with nodes that have nothing yet. */
void fabric_begin(struct fabric *f, const struct machine *machine, int32_t width, int32_t height, int32_t traces,
                  int64_t max_cycles) {
  f->machine = *machine;
  f->width = width;
  f->height = height;
  f->max_cycles = max_cycles < 0 ? NEVER / 2 : max_cycles;
  f->now = -1;
  f->visiting = UINT32_MAX;
  f->node_count = (uint32_t)width * (uint32_t)height;
  f->arena = arena_create();
  f->wheel = wheel_create();
  f->coroutines = coroutines_create();
  f->trace = traces ? trace_create() : NULL;
  f->nodes = arena_take(f->arena, f->node_count * sizeof *f->nodes);
}

/* Gives back what fabric_begin took, and then what f lies in. */
void fabric_end(struct fabric *f) {
  trace_destroy(f->trace);
  coroutines_destroy(f->coroutines);
  wheel_destroy(f->wheel);
  arena_destroy(f->arena);
  free(f);
}

EXPORT void fabric_visit_backwards(struct fabric *f) { f->backwards = true; }

EXPORT void fabric_trace_only(struct fabric *f, int64_t n, const int32_t *xs, const int32_t *ys) {
  if (f->trace) f->trace->of_chosen = true;
  for (int64_t i = 0; i < n; i++)
    if (xs[i] >= 0 && ys[i] >= 0 && xs[i] < f->width && ys[i] < f->height)
      f->nodes[(uint32_t)(ys[i] * f->width + xs[i])].traced = true;
}
