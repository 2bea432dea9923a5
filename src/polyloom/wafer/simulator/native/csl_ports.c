/* The host's ends: sources whose wavelets wait outside, one a cycle; sinks take what comes. */
#include <stdlib.h>

#include "csl_fabric.h"

void edge_step(struct fabric *f, uint32_t number, int64_t now) {
  struct csl_source *s = &csl_of(f)->sources[number];
  if (s->next == s->count) return;
  const struct slot *tail = ring_tail(s->ring);
  if (tail->full) {
    s->ring->producer_waits = 1;
    return;
  }
  if (tail->time >= now) {
    wake_edge(f, number, tail->time + 1);
    return;
  }
  bool control = s->control[s->next];
  csl_push(f, s->ring, now + f->machine.hop_latency, s->words[s->next++], (uint8_t)(s->color | (control ? TAG_CONTROL : 0)));
  f->statistics.wavelets++;
  if (s->next == s->count) csl_of(f)->goals_changed = true;
  else wake_edge(f, number, now + 1);
}

void csl_sink_take(struct csl_fabric *f, struct csl_sink *s, uint32_t payload, bool control, int64_t cycle) {
  if (s->count == s->capacity) {
    s->capacity = s->capacity ? 2 * s->capacity : 64;
    s->words = realloc(s->words, (size_t)s->capacity * sizeof *s->words);
    s->control = realloc(s->control, (size_t)s->capacity);
    s->cycle = realloc(s->cycle, (size_t)s->capacity * sizeof *s->cycle);
    if (!s->words || !s->control || !s->cycle) abort();
  }
  s->words[s->count] = payload;
  s->control[s->count] = control;
  s->cycle[s->count++] = cycle;
  f->goals_changed = true;
}

struct csl_sink *csl_find_sink(struct csl_fabric *f, uint32_t node, int side, int color) {
  const int32_t *sinks = f->routers[node].sinks;
  int32_t i = sinks ? sinks[side * CSL_COLORS + color] : -1;
  return i < 0 ? NULL : &f->sinks[i];
}
