/* Pushing into a ring and popping from it, and whom that wakes. */
#include "fabric.h"

static inline uint8_t ring_after(const struct ring *r, uint8_t i) { return i + 1 == r->capacity ? 0 : (uint8_t)(i + 1); }

/* A wavelet for an input queue: wake whoever reads it. */
static inline void announce(struct core *c, int queue, int64_t at) {
  if (c->inputs[queue].stream_reads) wake_engine(c, at);
  else if (c->state == CORE_WAITS_INPUT && c->waits_queue == queue) wake_core(c, at);
  else if (c->state == CORE_FREE && c->unblocked >> queue & 1) wake_core(c, later(at, c->pe.clock));
}

/* Puts a wavelet into the slot at the tail, which is free; its consumer may take it from cycle `at` on. */
void ring_push(struct fabric *f, struct ring *r, int64_t at, uint32_t payload, uint8_t tag) {
  struct slot *s = ring_tail(r);
  s->time = at;
  s->payload = payload;
  s->tag = tag;
  s->full = 1;
  r->tail = ring_after(r, r->tail);
  if (r->remote) mail_push(f, r, at);
  else if (r->consumer_kind == END_ROUTER) {
    f->nodes[r->consumer].occupied |= 1u << r->consumer_index;
    wake_router(f, r->consumer, at);
  } else {
    announce(f->nodes[r->consumer].core, r->consumer_index, at);
  }
}

static void wake_producer(struct fabric *f, struct ring *r, int64_t at) {
  r->producer_waits = 0;
  if (r->producer_kind == END_ROUTER) wake_router(f, r->producer, at);
  else if (r->producer_kind == END_EDGE) wake_edge(f, r->producer, at);
  else if (r->producer_kind == END_PE) {
    struct core *c = f->nodes[r->producer].core;
    if (c->stream_count) wake_engine(c, at);
    if (c->state == CORE_WAITS_OUTPUT) wake_core(c, at);
  }
}

/* Frees the slot at the head at cycle `at`; its producer may use it from the next cycle on. */
void ring_pop(struct fabric *f, struct ring *r, int64_t at) {
  struct slot *s = ring_head(r);
  if (r->remote) {
    mail_pop(f, r, r->head, at);
    r->announced--;
    r->head = ring_after(r, r->head);
    return;
  }
  s->full = 0;
  s->time = at;
  r->head = ring_after(r, r->head);
  if (r->producer_waits) wake_producer(f, r, at + 1);
}

void ring_announce(struct fabric *f, struct ring *r, int64_t at) {
  r->announced++;
  f->nodes[r->consumer].occupied |= 1u << r->consumer_index;
  wake_router(f, r->consumer, at);
}

void ring_freed(struct fabric *f, struct ring *r, uint8_t slot, int64_t at) {
  r->slots[slot].full = 0;
  r->slots[slot].time = at;
  if (r->producer_waits) wake_producer(f, r, at + 1);
}
