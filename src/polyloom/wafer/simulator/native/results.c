/* The clock on the wall, the limit of cycles, and what a simulation has come to; for layers and CSL programs alike. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric.h"

#define EXPORT __attribute__((visibility("default")))

_Thread_local struct pe *self;

enum run_status { RUN_GOES_ON, RUN_ENDED, RUN_FAILED };
enum { STEPS_BETWEEN_CLOCKS = 256, EVENTS_BETWEEN_CLOCKS = 1 << 16 };

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool over_limit(struct fabric *f) {
  if (f->failure.present || f->now <= f->max_cycles) return false;
  struct failure *e = &f->failure;
  e->present = 1;
  e->x = e->y = -1;
  e->cycle = f->now;
  strcpy(e->kind, "cycle-limit");
  strcpy(e->message, "the limit of cycles is reached");
  return true;
}

EXPORT void fabric_statistics(struct fabric *f, struct statistics *s) {
  uint32_t most = 0;
  f->statistics.scalar_operations = 0;
  for (uint32_t i = 0; i < f->node_count; i++) {
    for (int side = 0; side < SIDES; side++)
      if (f->nodes[i].link_use[side] > most) most = f->nodes[i].link_use[side];
    if (f->nodes[i].core) f->statistics.scalar_operations += f->nodes[i].core->pe.scalar_operations;
  }
  f->statistics.cycle = later(f->last_activity, f->failure.present ? f->failure.cycle : 0);
  f->statistics.max_link_use = most;
  *s = f->statistics;
}

EXPORT int64_t fabric_cycle(const struct fabric *f) { return f->now; }
EXPORT const struct failure *fabric_failure(const struct fabric *f) { return f->failure.present ? &f->failure : NULL; }

EXPORT void fabric_busy(const struct fabric *f, int64_t *cycles) {
  for (uint32_t i = 0; i < f->node_count; i++) cycles[i] = f->nodes[i].core ? f->nodes[i].core->busy : 0;
}

/* Wavelets that left each node: int64[nodes][sides]. */
EXPORT void fabric_link_use(const struct fabric *f, int64_t *wavelets) {
  for (uint32_t i = 0; i < f->node_count; i++)
    for (int side = 0; side < SIDES; side++) wavelets[i * SIDES + (uint32_t)side] = f->nodes[i].link_use[side];
}

EXPORT int64_t fabric_trace_count(const struct fabric *f) { return f->trace ? (int64_t)f->trace->count : 0; }
EXPORT const struct trace_event *fabric_trace(const struct fabric *f) { return f->trace ? f->trace->events : NULL; }
EXPORT int64_t fabric_line_count(const struct fabric *f) { return f->trace ? f->trace->profile.line_count : 0; }
EXPORT const struct line_use *fabric_line(const struct fabric *f, int64_t i) { return &f->trace->profile.lines[i]; }
EXPORT const char *fabric_line_role(const struct fabric *f, int64_t i) { return fabric_line(f, i)->role ? fabric_line(f, i)->role->name : ""; }
EXPORT const char *fabric_line_task(const struct fabric *f, int64_t i) { return fabric_line(f, i)->task; }
EXPORT const struct profile *fabric_profile(const struct fabric *f) { return f->trace ? &f->trace->profile : NULL; }
EXPORT int64_t fabric_name_count(const struct fabric *f) { return f->trace ? f->trace->name_count : 0; }
EXPORT const char *fabric_name(const struct fabric *f, int64_t i) { return f->trace->names[i]; }
