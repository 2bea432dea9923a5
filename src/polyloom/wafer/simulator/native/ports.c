/* External ports: sources feed their wavelets into the rectangle, one a cycle and link; sinks take what comes. */
#include <stdlib.h>

#include "fabric.h"

static void feed(struct fabric *f, struct source *s, int64_t now) {
  bool control = s->control[s->next];
  ring_push(f, s->ring, now + f->machine.hop_latency, s->payload[s->next], control ? TAG_CONTROL : TAG_EXTERNAL);
  s->next++;
  f->statistics.wavelets++;
}

/* When the source can feed: now, later, or NEVER. */
static int64_t source_ready(struct source *s, int64_t now) {
  if (s->next == s->count) return NEVER;
  const struct slot *tail = ring_tail(s->ring);
  if (!tail->full) return later(now, tail->time + 1);
  s->ring->producer_waits = 1;
  return NEVER;
}

void edge_step(struct fabric *f, uint32_t number, int64_t now) {
  struct edge *e = &f->edges[number];
  int64_t again = NEVER;
  bool fed = false;
  for (int i = 0, start = e->first; i < e->count; i++) {
    int k = (start + i) % e->count;
    int64_t ready = source_ready(e->sources[k], now);
    if (ready == now && !fed) {
      feed(f, e->sources[k], now);
      fed = true;
      e->first = (k + 1) % e->count;
      ready = source_ready(e->sources[k], now + 1);
    }
    again = earlier(again, ready == now ? now + 1 : ready);
  }
  if (again != NEVER) wake_edge(f, number, again);
}

static void grow(struct sink *s) {
  s->capacity = s->capacity ? 2 * s->capacity : 64;
  s->payload = realloc(s->payload, (size_t)s->capacity * sizeof *s->payload);
  s->control = realloc(s->control, (size_t)s->capacity * sizeof *s->control);
  s->cycle = realloc(s->cycle, (size_t)s->capacity * sizeof *s->cycle);
  if (!s->payload || !s->control || !s->cycle) abort();
}

void sink_take(struct sink *s, uint32_t payload, bool control, int64_t cycle) {
  if (s->count == s->capacity) grow(s);
  s->payload[s->count] = payload;
  s->control[s->count] = control;
  s->cycle[s->count++] = cycle;
}
