/* Joins the rings: routers with routers, queues, sources and sinks; and checks that no color runs in a circle. */
#include <string.h>

#include "fabric.h"

static const int STEP_X[4] = {0, 0, 1, -1}, STEP_Y[4] = {-1, 1, 0, 0};
static const char *const SIDE_NAME[SIDES] = {"NORTH", "SOUTH", "EAST", "WEST", "RAMP"};

/* The number of a sink, from 1 on; 0 if there is none. */
static uint32_t sink_at(const struct fabric *f, int side, int position, int color) {
  for (uint32_t i = 0; i < f->sink_count; i++)
    if (f->sinks[i]->side == side && f->sinks[i]->position == position && f->sinks[i]->color == color) return i + 1;
  return 0;
}

static void join_ramp(struct node *n, struct target *t, const struct route *r, uint32_t number) {
  struct core *c = n->core;
  if (!c) return;
  for (int q = 0; q < c->fabric->machine.input_queues; q++)
    if (c->inputs[q].ring.capacity && c->inputs[q].ring.color == r->color) t->ring = &c->inputs[q].ring;
  if (!t->ring) return;
  t->ring->producer = number;
  t->ring->producer_kind = END_ROUTER;
}

static void join_neighbour(struct fabric *f, uint32_t number, struct target *t, const struct route *r, int x, int y) {
  uint8_t opposite = t->side ^ 1;
  struct route *next = route_from(&f->nodes[(uint32_t)(y * f->width + x)], r->color, opposite);
  if (!next) {
    fail_setup(f, node_x(f, number), node_y(f, number), "route", "color %d goes %s, but PE(%d, %d) does not take it from %s",
               r->color, SIDE_NAME[t->side], x, y, SIDE_NAME[opposite]);
    return;
  }
  t->ring = &next->ring;
  next->ring.producer = number;
  next->ring.producer_kind = END_ROUTER;
}

static void join_target(struct fabric *f, uint32_t number, struct route *r, struct target *t) {
  if (t->side == SIDE_RAMP) {
    join_ramp(&f->nodes[number], t, r, number);
    return;
  }
  int x = node_x(f, number) + STEP_X[t->side], y = node_y(f, number) + STEP_Y[t->side];
  if (x >= 0 && x < f->width && y >= 0 && y < f->height) join_neighbour(f, number, t, r, x, y);
  else t->sink = sink_at(f, t->side, t->side <= SIDE_SOUTH ? node_x(f, number) : node_y(f, number), r->color);
}

static uint32_t border_node(const struct fabric *f, int side, int position) {
  int x = side == SIDE_EAST ? f->width - 1 : side == SIDE_WEST ? 0 : position;
  int y = side == SIDE_SOUTH ? f->height - 1 : side == SIDE_NORTH ? 0 : position;
  return (uint32_t)(y * f->width + x);
}

static uint32_t edge_number(const struct fabric *f, int side, int position) {
  return (uint32_t)(side <= SIDE_SOUTH ? side * f->width + position
                                       : 2 * f->width + (side - SIDE_EAST) * f->height + position);
}

static void join_source(struct fabric *f, struct source *s) {
  uint32_t number = border_node(f, s->side, s->position), edge = edge_number(f, s->side, s->position);
  struct route *r = route_from(&f->nodes[number], s->color, s->side);
  if (!r || r->ring.producer_kind != END_NONE) {
    fail_setup(f, node_x(f, number), node_y(f, number), "route", "a source feeds color %d from %s, but %s", s->color,
               SIDE_NAME[s->side], r ? "another one does so" : "the PE does not take it from there");
    return;
  }
  s->ring = &r->ring;
  r->ring.producer = edge;
  r->ring.producer_kind = END_EDGE;
  struct edge *e = &f->edges[edge];
  e->node = number;
  struct source **more = arena_take(f->arena, (size_t)(e->count + 1) * sizeof *more);
  if (e->count) memcpy(more, e->sources, (size_t)e->count * sizeof *more);
  more[e->count++] = s;
  e->sources = more;
}

static void make_edges(struct fabric *f) {
  f->edge_count = (uint32_t)(2 * (f->width + f->height));
  f->edges = arena_take(f->arena, f->edge_count * sizeof *f->edges);
  for (uint32_t i = 0; i < f->edge_count; i++) f->edges[i].due = NEVER;
  for (uint32_t i = 0; i < f->source_count; i++) join_source(f, f->sources[i]);
}

static void begin(struct fabric *f) {
  for (uint32_t i = 0; i < f->node_count; i++)
    if (f->nodes[i].core) wake_core(f->nodes[i].core, 0);
  for (uint32_t i = 0; i < f->edge_count; i++)
    if (f->edges[i].count) wake_edge(part_of(f, f->edges[i].node), i, 0);
}

static struct route *route_before(const struct fabric *f, const struct route *r) {
  return r->ring.producer_kind == END_ROUTER ? route_of(&f->nodes[r->ring.producer], r->color) : NULL;
}

/* Follows a color against its direction, to a route that was checked before, a beginning, or in a circle to itself. */
static void check_circle(struct fabric *f, uint32_t number, struct route *start) {
  enum { UNKNOWN, ON_THE_WAY, FINE };
  struct route *r = start;
  for (; r && r->checked == UNKNOWN; r = route_before(f, r)) r->checked = ON_THE_WAY;
  if (r && r->checked == ON_THE_WAY)
    fail_setup(f, node_x(f, number), node_y(f, number), "route", "the routes of color %d run in a circle", start->color);
  for (r = start; r && r->checked == ON_THE_WAY; r = route_before(f, r)) r->checked = FINE;
}

void link_rings(struct fabric *f, int32_t threads) {
  for (uint32_t number = 0; number < f->node_count; number++)
    for (int i = 0; i < f->nodes[number].route_count; i++) {
      struct route *r = &f->nodes[number].routes[i];
      for (int k = 0; k < r->target_count; k++) join_target(f, number, r, &r->targets[k]);
    }
  make_edges(f);
  for (uint32_t number = 0; number < f->node_count && !f->failure.present; number++)
    for (int i = 0; i < f->nodes[number].route_count; i++) check_circle(f, number, &f->nodes[number].routes[i]);
  team_form(f, threads);
  begin(f);
}
