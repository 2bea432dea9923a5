/* Asks the layout what every PE is, and makes it: its routes, queues and memory. */
#include <string.h>

#include "fabric.h"
#include "layout.h"

/* ---- What one call of layout() says ---- */

struct wanted_route { uint8_t color, from, to, other; struct filter filter; }; /* other: of a switch, the number of its other one, from 1 on */

enum { MOST_ROUTES = 32 }; /* a bit each in struct node */

struct draft {
  struct fabric *fabric;
  int x, y, count, origin_x, origin_y;
  const struct role *role;
  struct wanted_route routes[MOST_ROUTES];
  int16_t input_color[PE_MOST_QUEUES], output_color[PE_MOST_QUEUES];
};

static _Thread_local struct draft draft;

static bool side_of(int mask, uint8_t *side) {
  static const int masks[SIDES] = {NORTH, SOUTH, EAST, WEST, RAMP};
  for (uint8_t i = 0; i < SIDES; i++)
    if (masks[i] == mask) {
      *side = i;
      return true;
    }
  return false;
}

static bool valid_color(int color) {
  if (color >= 0 && color < draft.fabric->machine.colors) return true;
  fail_setup(draft.fabric, draft.x, draft.y, "color", "there is no color %d: the machine has %d", color,
             draft.fabric->machine.colors);
  return false;
}

void program(const struct role *role) { draft.role = role; }

void origin(int x, int y) {
  draft.origin_x = x;
  draft.origin_y = y;
}

void route(int color, int from, int to) {
  uint8_t side;
  if (!valid_color(color)) return;
  if (!side_of(from, &side) || to <= 0 || to > 31 || to & from) {
    fail_setup(draft.fabric, draft.x, draft.y, "route", "the route of color %d comes from one side and goes to others",
               color);
    return;
  }
  for (int i = 0; i < draft.count; i++)
    if (draft.routes[i].color == color) {
      fail_setup(draft.fabric, draft.x, draft.y, "route", "color %d has two routes", color);
      return;
    }
  if (draft.count == MOST_ROUTES) {
    fail_setup(draft.fabric, draft.x, draft.y, "route", "a router has %d routes at most, a switch counts as two", MOST_ROUTES);
    return;
  }
  draft.routes[draft.count++] = (struct wanted_route){(uint8_t)color, side, (uint8_t)to, 0, {0}};
}

void route_in_turn(int color, int first, int then, int to) {
  uint8_t side;
  int before = draft.count;
  route(color, first, to);
  if (draft.count == before || draft.count == MOST_ROUTES) return;
  if (!side_of(then, &side) || first == then || to & then) {
    fail_setup(draft.fabric, draft.x, draft.y, "route", "the positions of the switch of color %d take it from two sides", color);
    return;
  }
  draft.routes[before].other = (uint8_t)(before + 2);
  draft.routes[draft.count++] = (struct wanted_route){(uint8_t)color, side, (uint8_t)to, (uint8_t)(before + 1), {0}};
}

void filter(int color, int skip, int keep, int period) {
  struct wanted_route *w = NULL;
  for (int i = 0; i < draft.count; i++)
    if (draft.routes[i].color == color && draft.routes[i].to & RAMP) w = &draft.routes[i];
  if (!w || w->filter.period || skip < 0 || keep < 1 || skip + keep > period) {
    fail_setup(draft.fabric, draft.x, draft.y, "filter", "a filter of color %d lets %d wavelets pass behind %d, of each %d; %s",
               color, keep, skip, period, w ? "that cannot be" : "no route brings it to the PE");
    return;
  }
  w->filter = (struct filter){(uint32_t)skip, (uint32_t)keep, (uint32_t)period, 0};
}

void filter_pairs(int color, int skip, int keep, int period) { filter(color, skip / 2, keep / 2, period / 2); }

static void bind(int16_t *colors, int32_t queues, const char *what, int queue, int color) {
  if (!valid_color(color)) return;
  if (queue < 0 || queue >= queues) {
    fail_setup(draft.fabric, draft.x, draft.y, "too-many-queues", "there is no %s queue %d: the machine has %d", what, queue,
               queues);
    return;
  }
  for (int i = 0; i < queues; i++)
    if (colors[i] == color || (i == queue && colors[i] >= 0)) {
      fail_setup(draft.fabric, draft.x, draft.y, "binding", "%s queue %d and color %d: one of them is bound already", what,
                 queue, color);
      return;
    }
  colors[queue] = (int16_t)color;
}

void bind_input(int queue, int color) {
  bind(draft.input_color, draft.fabric->machine.input_queues, "input", queue, color);
}

void bind_output(int queue, int color) {
  bind(draft.output_color, draft.fabric->machine.output_queues, "output", queue, color);
}

/* ---- Making the node ---- */

static void make_ring(struct fabric *f, struct ring *r, int capacity, int color) {
  r->slots = arena_take(f->arena, (size_t)capacity * sizeof *r->slots);
  for (int i = 0; i < capacity; i++) r->slots[i].time = -1;
  r->capacity = (uint8_t)capacity;
  r->color = (uint8_t)color;
}

/* An output queue, the way to the router and the router's buffer are one ring. */
static int route_capacity(const struct machine *m, const struct wanted_route *w) {
  int capacity = m->router_buffer;
  if (w->from == SIDE_RAMP)
    for (int q = 0; q < m->output_queues; q++)
      if (draft.output_color[q] == w->color) capacity += m->output_lengths[q] + m->ramp_latency;
  return capacity;
}

static struct target *make_route(struct fabric *f, uint32_t number, struct node *n, int index, struct target *targets) {
  const struct wanted_route *w = &draft.routes[index];
  struct route *r = &n->routes[index];
  *r = (struct route){.color = w->color, .from = w->from, .to = w->to, .other = w->other,
                      .closed = w->other && w->other <= index};
  make_ring(f, &r->ring, route_capacity(&f->machine, w), w->color);
  r->ring.consumer = number;
  r->ring.consumer_kind = END_ROUTER;
  r->ring.consumer_index = (uint8_t)index;
  r->target_count = (uint8_t)__builtin_popcount(w->to);
  r->targets = targets;
  int k = 0;
  for (uint8_t side = 0; side < SIDES; side++)
    if (w->to & 1 << side) r->targets[k++].side = side;
  if (w->filter.period) {
    r->targets[k - 1].filter = arena_take(f->arena, sizeof(struct filter));
    *r->targets[k - 1].filter = w->filter;
  }
  return targets + k;
}

struct route *route_of(struct node *n, int color) {
  for (int i = 0; i < n->route_count; i++)
    if (n->routes[i].color == color) return &n->routes[i];
  return NULL;
}

struct route *route_from(struct node *n, int color, int side) {
  for (int i = 0; i < n->route_count; i++)
    if (n->routes[i].color == color && n->routes[i].from == side) return &n->routes[i];
  return NULL;
}

static void make_queues(struct fabric *f, struct core *c, struct node *n) {
  const struct machine *m = &f->machine;
  c->inputs = arena_take(f->arena, (size_t)m->input_queues * sizeof *c->inputs);
  c->outputs = arena_take(f->arena, (size_t)m->output_queues * sizeof *c->outputs);
  for (int q = 0; q < m->input_queues; q++) {
    if (draft.input_color[q] < 0) continue;
    struct ring *r = &c->inputs[q].ring;
    make_ring(f, r, m->input_lengths[q] + m->ramp_latency, draft.input_color[q]);
    r->consumer = c->number;
    r->consumer_kind = END_PE;
    r->consumer_index = (uint8_t)q;
  }
  for (int q = 0; q < m->output_queues; q++) {
    if (draft.output_color[q] < 0) continue;
    struct route *r = route_from(n, draft.output_color[q], SIDE_RAMP);
    if (!r) {
      fail_setup(f, draft.x, draft.y, "binding", "output queue %d feeds color %d, which has no route from the RAMP", q,
                 draft.output_color[q]);
      continue;
    }
    r->ring.producer = c->number;
    r->ring.producer_kind = END_PE;
    c->outputs[q] = &r->ring;
  }
}

static void make_core(struct fabric *f, uint32_t number, struct node *n) {
  const struct role *role = draft.role;
  struct core *c = n->core = arena_take(f->arena, sizeof *c);
  if (role->memory_bytes > (size_t)f->machine.memory_bytes)
    fail_setup(f, draft.x, draft.y, "memory", "role %s needs %zu bytes, a PE has %d", role->name, role->memory_bytes,
               f->machine.memory_bytes);
  c->pe = (struct pe){.memory = arena_take(f->arena, role->memory_bytes + 8),
                      .shadow = arena_take(f->arena, role->memory_bytes / 2 + 8),
                      .memory_bytes = role->memory_bytes, .costs = &f->machine.scalar, .x = draft.x - draft.origin_x,
                      .y = draft.y - draft.origin_y};
  c->fabric = f;
  c->node = n;
  c->number = number;
  c->role = role;
  c->core_due = c->engine_due = NEVER;
  c->engine_used = -2;
  c->invocations = 1;
  c->descriptors = arena_take(f->arena, (size_t)(role->operands + 1) * sizeof *c->descriptors);
  make_queues(f, c, n);
}

/* Routes and, behind them, all their targets. */
static void make_routes(struct fabric *f, uint32_t number, struct node *n) {
  size_t targets = 0, routes = (size_t)draft.count * sizeof *n->routes;
  for (int i = 0; i < draft.count; i++) targets += (size_t)__builtin_popcount(draft.routes[i].to);
  n->route_count = (uint8_t)draft.count;
  n->routes = arena_take(f->arena, routes + targets * sizeof(struct target));
  struct target *next = (struct target *)(n->routes + draft.count);
  for (int i = 0; i < draft.count; i++) next = make_route(f, number, n, i, next);
}

static void make_node(struct fabric *f, uint32_t number) {
  struct node *n = &f->nodes[number];
  n->router_due = NEVER;
  make_routes(f, number, n);
  if (draft.role) make_core(f, number, n);
}

static void ask(struct fabric *f, int x, int y) {
  draft = (struct draft){.fabric = f, .x = x, .y = y};
  memset(draft.input_color, -1, sizeof draft.input_color);
  memset(draft.output_color, -1, sizeof draft.output_color);
  layout(x, y);
}

void lay_out(struct fabric *f) {
  for (uint32_t number = 0; number < f->node_count; number++) {
    ask(f, node_x(f, number), node_y(f, number));
    make_node(f, number);
  }
}
