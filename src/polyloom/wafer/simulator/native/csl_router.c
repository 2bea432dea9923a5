/* The router of a CSL program: routes with switches, filters and color swap, one wavelet a cycle and side.
 *
 * A wavelet leaves by the position that the color's switch has when it leaves; a command that it carries is executed after
 * that. What comes from a side that the position does not take waits, without holding up other colors. */
#include "csl_fabric.h"

static const int CSL_STEP_X[4] = {0, 0, 1, -1}, CSL_STEP_Y[4] = {-1, 1, 0, 0};

struct csl_ways { /* where a wavelet goes */
  struct ring *rings[SIDES + 1];
  struct csl_sink *sinks[SIDES + 1];
  uint8_t sides;  /* the outputs that are busy with it, as bits */
  bool blocked, outside;
};

/* ---- Filters ---- */

static bool filter_passes(const struct csl_filter *x, uint32_t payload, bool control) {
  uint32_t index = payload >> 16;
  if (x->kind == FILTER_RANGE) return control || (x->low <= index && index <= x->high);
  if (x->kind == FILTER_COUNTER && (control ? x->count_control : x->count_data)) return x->counter <= x->most;
  return true;
}

static void filter_counts(struct csl_filter *x, bool control) {
  if (x->kind != FILTER_COUNTER || !(control ? x->count_control : x->count_data)) return;
  x->counter = x->counter >= x->limit ? 0 : x->counter + 1;
}

/* ---- Commands of control wavelets ---- */

enum { NOCE_BIT = 24, FIRST_OPCODE = 22 };
static const uint8_t OPCODE_AT[8] = {22, 25, 28, 1, 4, 7, 10, 13}, NOCE_AT[8] = {24, 27, 0, 3, 6, 9, 12, 15};

static uint32_t first_opcode(uint32_t payload) { return payload >> FIRST_OPCODE & 3; }
static bool kept_from_pe(uint32_t payload) { return payload >> NOCE_BIT & 1; }

/* Without its first command: the others move up, the last one becomes NOP with NOCE. A wavelet whose other commands are
 * all NOP and not NOCE carries data in their place, which stay. */
static uint32_t popped(uint32_t payload) {
  bool many = payload & 1u << NOCE_AT[1];
  if (!many) return (payload & ~(3u << FIRST_OPCODE));
  uint32_t out = payload;
  for (int i = 0; i < 8; i++) {
    uint32_t opcode = i < 7 ? payload >> OPCODE_AT[i + 1] & 3 : CSL_NOP, noce = i < 7 ? payload >> NOCE_AT[i + 1] & 1 : 1;
    out = (out & ~(3u << OPCODE_AT[i]) & ~(1u << NOCE_AT[i])) | opcode << OPCODE_AT[i] | noce << NOCE_AT[i];
  }
  return out;
}

uint8_t csl_next_position(const struct csl_route *r) {
  int next = r->position + 1;
  if (next < CSL_POSITIONS && (r->rx[next] | r->tx[next])) return (uint8_t)next;
  return r->ring_mode ? 0 : r->position;
}

static void begin_teardown(struct fabric *f, uint32_t number, struct csl_route *r, int color, int64_t now) {
  r->teardown = 1;
  struct csl_core *c = csl_core_at(f, number);
  if (!c) return;
  c->teardown |= 1u << color;
  csl_wake(c, now + f->machine.ramp_latency);
}

/* Executes the first command; returns the payload that goes on to the next router. */
static uint32_t execute(struct fabric *f, uint32_t number, struct csl_route *r, int color, uint32_t payload, int64_t now) {
  uint32_t opcode = first_opcode(payload);
  uint8_t before = r->position;
  if (opcode == CSL_SWITCH_ADV) r->position = csl_next_position(r);
  if (opcode == CSL_SWITCH_RST) r->position = 0;
  if (opcode == CSL_TEARDOWN) begin_teardown(f, number, r, color, now);
  bool pop = r->pop_mode == POP_ALWAYS || (r->pop_mode == POP_ON_ADVANCE && r->position != before);
  return pop ? popped(payload) : payload;
}

/* ---- Ways ---- */

static bool full(struct ring *r, int64_t now, int64_t *from) {
  const struct slot *s = ring_tail(r);
  if (s->full) {
    r->producer_waits = 1;
    return true;
  }
  if (s->time >= now) *from = later(*from, s->time + 1);
  return false;
}

struct ring *csl_landing(struct csl_core *c, int color) {
  for (int q = 0; q < CSL_QUEUES; q++)
    if (c->input_color[q] == color) return c->inputs[q];
  return c->of_color[color];
}

static bool way_to_neighbour(struct fabric *f, uint32_t number, int side, int color, struct csl_ways *w) {
  int x = node_x(f, number) + CSL_STEP_X[side], y = node_y(f, number) + CSL_STEP_Y[side];
  if (x < 0 || x >= f->width || y < 0 || y >= f->height) {
    w->sinks[side] = csl_find_sink(csl_of(f), number, side, color);
    return w->sinks[side];
  }
  uint32_t next = (uint32_t)(y * f->width + x);
  const struct csl_route *there = &csl_of(f)->routers[next].routes[color];
  bool swap = side <= SIDE_SOUTH ? there->swap_y : there->swap_x;
  struct ring *r = csl_input_of(f, next, side ^ 1, swap ? color ^ 1 : color);
  r->producer = number;
  r->producer_kind = END_ROUTER;
  w->rings[side] = r;
  return true;
}

static void way_to_pe(struct fabric *f, uint32_t number, int color, struct csl_ways *w) {
  struct csl_core *c = csl_core_at(f, number);
  struct ring *r = c ? csl_landing(c, color) : NULL;
  if (!r) {
    w->blocked = true;
    return;
  }
  r->producer = number;
  r->producer_kind = END_ROUTER;
  w->rings[SIDE_RAMP] = r;
}

static struct csl_ways find_ways(struct fabric *f, uint32_t number, int side, int color, const struct slot *s) {
  struct csl_router *router = &csl_of(f)->routers[number];
  struct csl_route *r = &router->routes[color];
  struct csl_ways w = {0};
  bool control = s->tag & TAG_CONTROL;
  uint8_t tx = side == SIDE_HOST ? 1u << SIDE_RAMP : r->tx[r->position];
  if (side == SIDE_RAMP && !r->configured && router->host_sinks >> color & 1) {
    w.sinks[SIDE_HOST] = csl_find_sink(csl_of(f), number, SIDE_HOST, color);
    w.sides = 1u << SIDE_HOST;
    return w;
  }
  if (side != SIDE_HOST && (!r->configured || r->teardown || !(r->rx[r->position] >> side & 1))) {
    w.blocked = true;
    return w;
  }
  w.sides = tx;
  for (int to = SIDE_NORTH; to <= SIDE_WEST; to++)
    if (tx >> to & 1 && !way_to_neighbour(f, number, to, color, &w)) w.outside = true;
  bool to_pe = tx >> SIDE_RAMP & 1 && !(control && kept_from_pe(s->payload)) && filter_passes(&r->filter, s->payload, control);
  if (to_pe) way_to_pe(f, number, color, &w);
  return w;
}

/* ---- One wavelet ---- */

static void forward(struct fabric *f, uint32_t number, int side, int color, struct ring *from, struct csl_ways *w,
                    int64_t now) {
  struct csl_route *r = &csl_of(f)->routers[number].routes[color];
  struct node *n = &f->nodes[number];
  struct slot s = *ring_head(from);
  bool control = s.tag & TAG_CONTROL, own = side != SIDE_HOST && r->configured;
  if (own) filter_counts(&r->filter, control);
  uint32_t onward = control && own ? execute(f, number, r, color, s.payload, now) : s.payload;
  uint8_t tag = (uint8_t)(color | (s.tag & TAG_CONTROL));
  for (int to = 0; to <= SIDE_HOST; to++) {
    if (!(w->sides >> to & 1)) continue;
    if (to < SIDES) n->link_use[to]++;
    f->statistics.hops += to < SIDE_RAMP;
    f->statistics.events++;
    if (f->trace && to < SIDES) trace_add(f, TRACE_LINK, number, to, color_text(color), now, now + 1);
    if (w->sinks[to]) csl_sink_take(csl_of(f), w->sinks[to], onward, control, now + f->machine.hop_latency);
    else if (w->rings[to])
      csl_push(f, w->rings[to], now + (to == SIDE_RAMP ? f->machine.ramp_latency : f->machine.hop_latency),
               to == SIDE_RAMP ? s.payload : onward,
               to == SIDE_RAMP ? tag : (uint8_t)((w->rings[to]->consumer_index % 32) | (tag & TAG_CONTROL)));
  }
  f->last_activity = later(f->last_activity, now + 1);
  csl_pop(f, from, now);
  if (side == SIDE_RAMP) {
    struct csl_core *c = csl_core_at(f, number);
    if (c->flush_out) csl_wake(c, now + 1);
  }
}

/* Whether a wavelet of the color stands ready at that side. */
static bool comes_from(struct csl_router *router, int side, int color, int64_t now) {
  if (side != SIDE_RAMP) {
    const struct slot *s = router->in[side][color] ? ring_head(router->in[side][color]) : NULL;
    return s && s->full && s->time <= now;
  }
  for (uint32_t set = router->waiting[SIDE_RAMP]; set; set &= set - 1) {
    const struct slot *s = ring_head(router->in[SIDE_RAMP][__builtin_ctz(set)]);
    if (s->full && s->time <= now && (s->tag & TAG_COLOR) == color) return true;
  }
  return false;
}

/* Wavelets for one color from two sides at once: which goes first is undefined on the machine. */
static bool merges(struct fabric *f, uint32_t number, int side, int color, int64_t now) {
  struct csl_router *router = &csl_of(f)->routers[number];
  const struct csl_route *r = &router->routes[color];
  uint8_t others = (uint8_t)(r->rx[r->position] & ~(1u << side));
  if (side >= SIDE_HOST || !others) return false;
  for (int other = 0; other < SIDES; other++) {
    if (!(others >> other & 1) || !comes_from(router, other, color, now)) continue;
    fail_node(f, number, "merge", NULL, "wavelets of color %d come from two sides at once", color);
    return true;
  }
  return false;
}

/* What one input does in this cycle; returns when to look again, NEVER if something will wake the router. */
static int64_t serve_input(struct fabric *f, uint32_t number, int side, int index, uint8_t *taken, int *served, int64_t now) {
  struct csl_router *router = &csl_of(f)->routers[number];
  struct ring *from = router->in[side][index];
  const struct slot *s = ring_head(from);
  if (s->time > now) return s->time;
  int color = s->tag & TAG_COLOR;
  struct csl_ways w = find_ways(f, number, side, color, s);
  if (w.blocked) return NEVER;
  if (w.outside) {
    fail_node(f, number, "no-sink", NULL, "a wavelet of color %d leaves the rectangle where nothing takes it", color);
    return NEVER;
  }
  int64_t room = now;
  for (int to = 0; to < SIDES; to++)
    if (w.rings[to] && full(w.rings[to], now, &room)) return NEVER;
  if (room > now) return room;
  if (w.sides & *taken) return now + 1;
  if (router->routes[color].configured && merges(f, number, side, color, now)) return NEVER;
  *taken |= w.sides;
  if (*served < 0) *served = side * 32 + index;
  bool control = s->tag & TAG_CONTROL;
  forward(f, number, side, color, from, &w, now);
  if (!ring_head(from)->full) router->waiting[side] &= ~(1u << index);
  if (control) return now + 1; /* a switch may have moved */
  return ring_head(from)->full ? later(ring_head(from)->time, now + 1) : NEVER;
}

void router_step(struct fabric *f, uint32_t number, int64_t now) {
  struct csl_router *router = &csl_of(f)->routers[number];
  uint8_t taken = 0;
  int served = -1;
  int64_t again = NEVER;
  for (int pass = 0; pass < 2; pass++)
    for (int side = 0; side < INPUT_SIDES; side++)
      for (uint32_t set = router->waiting[side]; set; set &= set - 1) {
        int index = __builtin_ctz(set);
        if ((side * 32 + index >= router->first) != (pass == 0)) continue;
        again = earlier(again, serve_input(f, number, side, index, &taken, &served, now));
      }
  if (served >= 0) router->first = (uint8_t)(served + 1);
  if (again != NEVER) wake_router(f, number, again);
}

/* After a change of routes or queues at run time: what waited may go on. */
void csl_routes_changed(struct fabric *f, uint32_t node) { wake_router(f, node, f->now + 1); }
