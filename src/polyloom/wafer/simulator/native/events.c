/* Events: which node has something to do at which cycle. A wheel of buckets for the near cycles, a heap for the far ones.
 *
 * An event is only a node's number: what is due there (router, SIMD engine, main thread) stands in the node itself, so
 * that a node is visited in one fixed order, and an event that has been overtaken finds nothing due. */
#include <stdlib.h>

#include "fabric.h"

enum { BUCKETS = 1024, CHUNK = 1020 };

struct chunk {
  struct chunk *next;
  uint32_t count;
  uint32_t nodes[CHUNK + 1];
};

struct far { int64_t at; uint32_t node; };

struct wheel {
  struct chunk *buckets[BUCKETS];
  uint64_t filled[BUCKETS / 64];
  struct chunk *free;
  struct far *heap; /* the earliest first */
  size_t far_count, far_capacity;
};

struct wheel *wheel_create(void) { return calloc(1, sizeof(struct wheel)); }

static void free_chunks(struct chunk *c) {
  while (c) {
    struct chunk *next = c->next;
    free(c);
    c = next;
  }
}

void wheel_destroy(struct wheel *w) {
  if (!w) return;
  for (int i = 0; i < BUCKETS; i++) free_chunks(w->buckets[i]);
  free_chunks(w->free);
  free(w->heap);
  free(w);
}

static struct chunk *new_chunk(struct wheel *w, struct chunk *next) {
  struct chunk *c = w->free;
  if (c) w->free = c->next;
  else if (!(c = malloc(sizeof *c))) abort();
  c->next = next;
  c->count = 0;
  return c;
}

static inline void add_near(struct wheel *w, uint32_t node, int64_t at) {
  uint32_t i = (uint32_t)at % BUCKETS;
  struct chunk *c = w->buckets[i];
  if (!c || c->count > CHUNK) {
    c = w->buckets[i] = new_chunk(w, c);
    w->filled[i / 64] |= 1ull << i % 64;
  }
  c->nodes[c->count++] = node;
}

static void add_far(struct wheel *w, uint32_t node, int64_t at) {
  if (w->far_count == w->far_capacity) {
    w->far_capacity = w->far_capacity ? 2 * w->far_capacity : 256;
    if (!(w->heap = realloc(w->heap, w->far_capacity * sizeof *w->heap))) abort();
  }
  size_t i = w->far_count++;
  for (; i && w->heap[(i - 1) / 2].at > at; i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
  w->heap[i] = (struct far){at, node};
}

static struct far take_far(struct wheel *w) {
  struct far first = w->heap[0], last = w->heap[--w->far_count];
  size_t i = 0, child;
  while ((child = 2 * i + 1) < w->far_count) {
    if (child + 1 < w->far_count && w->heap[child + 1].at < w->heap[child].at) child++;
    if (w->heap[child].at >= last.at) break;
    w->heap[i] = w->heap[child];
    i = child;
  }
  w->heap[i] = last;
  return first;
}

static inline void add_event(struct fabric *f, uint32_t node, int64_t at) {
  if (at <= f->now) {
    if (f->visiting != node) abort(); /* only a node itself may still add to this cycle */
    return;
  }
  if (at - f->now < BUCKETS) add_near(f->wheel, node, at);
  else add_far(f->wheel, node, at);
}

void wake_router(struct fabric *f, uint32_t node, int64_t at) {
  struct node *n = &f->nodes[node];
  if (at >= n->router_due) return;
  n->router_due = at;
  add_event(f, node, at);
}

void wake_core(struct core *c, int64_t at) {
  if (at >= c->core_due) return;
  c->core_due = at;
  add_event(c->fabric, c->number, at);
}

void wake_engine(struct core *c, int64_t at) {
  if (at >= c->engine_due) return;
  c->engine_due = at;
  add_event(c->fabric, c->number, at);
}

void wake_edge(struct fabric *f, uint32_t edge, int64_t at) {
  if (at >= f->edges[edge].due) return;
  f->edges[edge].due = at;
  add_event(f, f->node_count + edge, at);
}

/* The distance from bucket `from` to the next filled one; BUCKETS if there is none. */
static int64_t next_filled(const struct wheel *w, uint32_t from) {
  for (uint32_t d = 0; d < BUCKETS; d += 64 - (from + d) % 64) {
    uint32_t i = (from + d) % BUCKETS;
    uint64_t bits = w->filled[i / 64] >> i % 64;
    if (bits) return (int64_t)d + __builtin_ctzll(bits) < BUCKETS ? (int64_t)d + __builtin_ctzll(bits) : BUCKETS;
  }
  return BUCKETS;
}

int64_t next_cycle(struct fabric *f) {
  struct wheel *w = f->wheel;
  int64_t near = next_filled(w, (uint32_t)(f->now + 1) % BUCKETS);
  int64_t at = near < BUCKETS ? f->now + 1 + near : NEVER;
  return w->far_count ? earlier(at, w->heap[0].at) : at;
}

static inline void visit_node(struct fabric *f, uint32_t number) {
  struct node *n = &f->nodes[number];
  f->visiting = number;
  if (n->router_due <= f->now) {
    n->router_due = NEVER;
    router_step(f, number, f->now);
  }
  struct core *c = n->core;
  if (!c) return;
  if (c->engine_due <= f->now) {
    c->engine_due = NEVER;
    engine_step(c, f->now);
  }
  while (c->core_due <= f->now) { /* again where a task ends in this cycle: the next one may start in it */
    c->core_due = NEVER;
    core_step(c, f->now);
  }
}

static inline void visit(struct fabric *f, uint32_t number) {
  if (number < f->node_count) {
    visit_node(f, number);
    return;
  }
  struct edge *e = &f->edges[number - f->node_count];
  if (e->due > f->now) return;
  f->visiting = number;
  e->due = NEVER;
  edge_step(f, number - f->node_count, f->now);
}

/* ---- Prefetching ----
 *
 * In a large fabric the time goes into waiting for memory: ask for what a visit will touch some nodes ahead, in the
 * order of the pointers, each stage far enough behind the one that has asked for what it reads. */

enum { LINE = 64, AHEAD_NODE = 40, AHEAD_PARTS = 32, AHEAD_RINGS = 22, AHEAD_SLOTS = 12 };
enum { NODES_THAT_FIT = 1024 }; /* fabrics of so many nodes stay in the cache by themselves */
enum { USUAL_QUEUES = 2, USUAL_OPERANDS = 5, USUAL_MEMORY = 3 * LINE }; /* what a task touches; the rest is waited for */

static inline void prefetch(const void *from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += LINE) __builtin_prefetch((const char *)from + at, 1);
}

static inline bool router_is_due(const struct fabric *f, const struct node *n) { return n->router_due <= f->now; }
static inline bool core_is_due(const struct fabric *f, const struct node *n) {
  return n->core && (n->core->core_due <= f->now || n->core->engine_due <= f->now);
}

static inline void prefetch_parts(const struct fabric *f, const struct node *n) {
  if (router_is_due(f, n)) prefetch(n->routes, (n->route_count + 1u) * sizeof *n->routes);
  if (n->core) prefetch(n->core, offsetof(struct core, streams));
}

static inline void prefetch_rings(const struct fabric *f, const struct node *n) {
  if (router_is_due(f, n))
    for (uint32_t set = n->occupied; set; set &= set - 1) {
      const struct route *r = &n->routes[__builtin_ctz(set)];
      __builtin_prefetch(&r->ring.slots[r->ring.head], 1);
      for (int i = 0; i < r->target_count; i++)
        if (r->targets[i].ring) __builtin_prefetch(r->targets[i].ring, 1);
    }
  if (!core_is_due(f, n)) return;
  const struct core *c = n->core;
  prefetch(c->inputs, USUAL_QUEUES * sizeof *c->inputs);
  __builtin_prefetch(c->outputs);
  prefetch(c->descriptors, USUAL_OPERANDS * sizeof *c->descriptors);
  prefetch(c->pe.memory, USUAL_MEMORY);
  prefetch(c->pe.shadow, USUAL_MEMORY / 2);
  if (c->coroutine) __builtin_prefetch(c->coroutine);
}

static inline void prefetch_slots(const struct fabric *f, const struct node *n) {
  if (router_is_due(f, n))
    for (uint32_t set = n->occupied; set; set &= set - 1) {
      const struct route *r = &n->routes[__builtin_ctz(set)];
      for (int i = 0; i < r->target_count; i++) {
        const struct ring *to = r->targets[i].ring;
        if (!to) continue;
        __builtin_prefetch(&to->slots[to->tail], 1);
        __builtin_prefetch(&f->nodes[to->consumer], 1);
      }
    }
  if (!core_is_due(f, n)) return;
  const struct core *c = n->core;
  for (int q = 0; q < USUAL_QUEUES && q < f->machine.input_queues; q++) {
    const struct ring *r = &c->inputs[q].ring;
    if (r->slots) __builtin_prefetch(&r->slots[r->head], 1);
  }
  if (f->machine.output_queues && c->outputs[0]) __builtin_prefetch(c->outputs[0]);
  if (c->coroutine) prefetch_stack(c->coroutine);
}

typedef void stage(const struct fabric *f, const struct node *n);

static inline void ahead(const struct fabric *f, const struct chunk *c, int64_t k, stage *look) {
  if (k < 0 || k >= c->count || c->nodes[k] >= f->node_count) return;
  look(f, &f->nodes[c->nodes[k]]);
}

static void node_itself(const struct fabric *f, const struct node *n) {
  (void)f;
  __builtin_prefetch(n, 1);
}

static void visit_chunk(struct fabric *f, const struct chunk *c) {
  for (int64_t k = -AHEAD_NODE; k < c->count; k++) {
    ahead(f, c, k + AHEAD_NODE, node_itself);
    ahead(f, c, k + AHEAD_PARTS, prefetch_parts);
    ahead(f, c, k + AHEAD_RINGS, prefetch_rings);
    ahead(f, c, k + AHEAD_SLOTS, prefetch_slots);
    if (k >= 0) visit(f, c->nodes[k]);
  }
}

static void visit_chunk_of_few(struct fabric *f, const struct chunk *c) {
  for (uint32_t k = 0; k < c->count; k++) visit(f, c->nodes[f->backwards ? c->count - 1 - k : k]);
}

static bool visit_bucket(struct fabric *f) {
  struct wheel *w = f->wheel;
  uint32_t i = (uint32_t)f->now % BUCKETS;
  struct chunk *c = w->buckets[i];
  bool filled = c;
  w->buckets[i] = NULL;
  w->filled[i / 64] &= ~(1ull << i % 64);
  while (c) {
    struct chunk *next = c->next;
    if (f->backwards || f->node_count <= NODES_THAT_FIT) visit_chunk_of_few(f, c);
    else visit_chunk(f, c);
    c->next = w->free;
    w->free = c;
    c = next;
  }
  return filled;
}

bool visit_cycle(struct fabric *f, int64_t at) {
  f->now = at;
  while (f->wheel->far_count && f->wheel->heap[0].at <= at) add_near(f->wheel, take_far(f->wheel).node, at);
  bool filled = visit_bucket(f);
  f->visiting = UINT32_MAX;
  return filled;
}
