/* Rings of a fabric of CSL programs: making them, pushing, popping, and whom that wakes. */
#include "csl_fabric.h"

static inline uint8_t after(const struct ring *r, uint8_t i) { return i + 1 == r->capacity ? 0 : (uint8_t)(i + 1); }

struct ring *csl_ring(struct fabric *f, int capacity, uint8_t consumer_kind, uint32_t consumer, int index) {
  struct ring *r = arena_take(f->arena, sizeof *r);
  r->slots = arena_take(f->arena, (size_t)capacity * sizeof *r->slots);
  for (int i = 0; i < capacity; i++) r->slots[i].time = -1;
  r->capacity = (uint8_t)capacity;
  r->consumer_kind = consumer_kind;
  r->consumer = consumer;
  r->consumer_index = (uint8_t)index;
  return r;
}

/* The buffer of a router for what comes from a side on a color; made when the first wavelet comes. */
struct ring *csl_input_of(struct fabric *f, uint32_t node, int side, int color) {
  struct ring **r = &csl_of(f)->routers[node].in[side][color];
  if (!*r) *r = csl_ring(f, f->machine.router_buffer, END_ROUTER, node, side * 32 + color);
  return *r;
}

void csl_push(struct fabric *f, struct ring *r, int64_t at, uint32_t payload, uint8_t tag) {
  struct slot *s = ring_tail(r);
  s->time = at;
  s->payload = payload;
  s->tag = tag;
  s->full = 1;
  r->tail = after(r, r->tail);
  if (r->consumer_kind == END_ROUTER) {
    csl_of(f)->routers[r->consumer].waiting[r->consumer_index / 32] |= 1u << r->consumer_index % 32;
    wake_router(f, r->consumer, at);
    return;
  }
  struct csl_core *c = csl_core_at(f, r->consumer);
  if (c->stream_count) wake_engine(&c->core, at);
  csl_wake(c, at);
}

static void wake_producer_of(struct fabric *f, struct ring *r, int64_t at) {
  r->producer_waits = 0;
  if (r->producer_kind == END_ROUTER) wake_router(f, r->producer, at);
  else if (r->producer_kind == END_EDGE) wake_edge(f, r->producer, at);
  else if (r->producer_kind == END_PE) {
    struct csl_core *c = csl_core_at(f, r->producer);
    if (c->stream_count) wake_engine(&c->core, at);
    if (c->core.state == CORE_WAITS_OUTPUT) wake_core(&c->core, at);
  }
}

/* Frees the slot at the head at cycle `at`; its producer may use it from the next cycle on. */
void csl_pop(struct fabric *f, struct ring *r, int64_t at) {
  struct slot *s = ring_head(r);
  s->full = 0;
  s->time = at;
  r->head = after(r, r->head);
  if (r->producer_waits) wake_producer_of(f, r, at + 1);
}
