/* A router: moves the first wavelet of each of its routes, one wavelet a cycle and side, in fair rotation. */
#include "fabric.h"

static inline bool filter_passes(const struct filter *x) { return !x || x->next - x->skip < x->keep; }

static inline void filter_counts(struct filter *x) {
  if (x && ++x->next == x->period) x->next = 0;
}

/* When the route can hand a wavelet to all its targets: now, at a later cycle, or NEVER: then a pop wakes the router. */
static inline int64_t room_from(const struct route *r, int64_t now) {
  int64_t from = now;
  for (int i = 0; i < r->target_count; i++) {
    struct ring *to = r->targets[i].ring;
    if (!to || !filter_passes(r->targets[i].filter)) continue;
    const struct slot *s = ring_tail(to);
    if (s->full) {
      to->producer_waits = 1;
      return NEVER;
    }
    if (s->time >= from) from = s->time + 1;
  }
  return from;
}

static void leave_rings(struct fabric *f, uint32_t number, const struct route *r, const struct target *t,
                        const struct slot *s, int64_t now) {
  int64_t arrival = now + f->machine.hop_latency;
  if (t->sink) {
    if (!(s->tag & TAG_TURN)) sink_take(f->sinks[t->sink - 1], s->payload, s->tag & TAG_CONTROL, arrival);
    f->last_activity = later(f->last_activity, arrival);
  } else if (t->side == SIDE_RAMP)
    fail_node(f, number, "unbound-color", NULL, "a wavelet of color %d comes to a PE that binds no input queue to it", r->color);
  else
    fail_node(f, number, "no-sink", NULL, "a wavelet of color %d leaves the rectangle where nothing takes it", r->color);
}

/* Moves the wavelet on; returns whether it turned the switch. */
static inline bool forward(struct fabric *f, uint32_t number, struct node *n, struct route *r, int64_t now) {
  struct slot *s = ring_head(&r->ring);
  bool turns = r->other && s->tag & TAG_TURN && s->payload;
  s->payload -= turns;
  for (int i = 0; i < r->target_count; i++) {
    const struct target *t = &r->targets[i];
    bool ramp = t->side == SIDE_RAMP, passes = filter_passes(t->filter);
    filter_counts(t->filter);
    if (!passes) continue;
    n->link_use[t->side]++;
    f->statistics.hops += !ramp;
    if (f->trace) trace_add(f, TRACE_LINK, number, t->side, color_text(r->color), now, now + 1);
    if (t->ring) ring_push(f, t->ring, now + (ramp ? f->machine.ramp_latency : f->machine.hop_latency), s->payload, s->tag);
    else leave_rings(f, number, r, t, s, now);
  }
  f->statistics.events += r->target_count;
  f->last_activity = later(f->last_activity, now + 1);
  ring_pop(f, &r->ring, now);
  if (turns) {
    r->closed = true;
    n->routes[r->other - 1].closed = false;
  }
  return turns;
}

/* What the route does in this cycle; returns when it wants to be looked at again, NEVER if something will wake it. */
static inline int64_t serve(struct fabric *f, uint32_t number, struct node *n, uint32_t index, uint8_t *taken, int *first,
                            int64_t now) {
  struct route *r = &n->routes[index];
  if (r->closed) return NEVER;
  int64_t ready = ring_head(&r->ring)->time;
  if (ready > now) return ready;
  ready = room_from(r, now);
  if (ready > now) return ready;
  if (r->to & *taken) return now + 1;
  *taken |= r->to;
  if (*first < 0) *first = (int)index;
  bool turned = forward(f, number, n, r, now);
  if (ring_filled(&r->ring)) return turned ? now + 1 : later(ring_head(&r->ring)->time, now + 1);
  n->occupied &= ~(1u << index);
  return turned ? now + 1 : NEVER;
}

void router_step(struct fabric *f, uint32_t number, int64_t now) {
  struct node *n = &f->nodes[number];
  uint8_t taken = 0;
  int first = -1;
  int64_t again = NEVER;
  uint32_t all = n->occupied, turn = ~0u << n->first;
  for (uint32_t set = all & turn, pass = 0; pass < 2; set = all & ~turn, pass++)
    for (; set; set &= set - 1)
      again = earlier(again, serve(f, number, n, (uint32_t)__builtin_ctz(set), &taken, &first, now));
  if (first >= 0) n->first = first + 1 == n->route_count ? 0 : (uint8_t)(first + 1);
  if (again != NEVER) wake_router(f, number, again);
}
