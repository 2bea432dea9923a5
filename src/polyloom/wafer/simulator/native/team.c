/* Several threads for one simulation: the rows are dealt out to parts, and every part is the work of one thread.
 *
 * All parts are in the same cycle. What happens on a link between two parts is told by letters, which are read when
 * the cycle has ended: a push becomes known to the consumer's part, a freed slot to the producer's. As both concern later
 * cycles only, bits and cycles are those of one thread. One barrier a cycle is enough: what a part tells the others
 * stands in one of two copies in turn, and no part is ever two cycles ahead of another. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric.h"

enum { MOST_PARTS = 16, SPINS = 4000 };

struct letter {
  struct ring *ring;
  int64_t at;
  bool push; /* else a slot was freed */
  uint8_t slot;
};

struct letters {
  struct letter *list;
  size_t count, capacity;
};

struct news { /* of one part, about one cycle */
  int64_t next; /* the earliest cycle at which anything is to be done, as far as the part knows */
  int64_t events;
  bool visited, failed;
  bool quit; /* nobody wants to know how it goes on */
};

struct member {
  struct fabric *part;
  struct letters out[2][MOST_PARTS]; /* to every other part */
  struct news news[2];
  int turn;             /* which of the two copies is written */
  int64_t upcoming;     /* the cycle on which all parts agree */
  int64_t first_letter; /* when the first letter of this cycle concerns somebody */
  int64_t last_visit;
  pthread_t thread;
};

struct team {
  uint32_t count;
  bool begun, joined;
  int spins; /* before a thread sleeps */
  pthread_mutex_t lock;
  pthread_cond_t met;
  _Alignas(64) atomic_uint arrived;
  _Alignas(64) atomic_uint generation;
  _Alignas(64) struct member members[MOST_PARTS];
};

/* ---- Dealing out ---- */

static uint32_t first_row(const struct fabric *f, uint32_t part) {
  return (uint32_t)((uint64_t)part * (uint32_t)f->height / f->team->count);
}

static uint32_t part_number(const struct fabric *f, uint32_t node) {
  if (!f->team) return 0;
  uint32_t row = node / (uint32_t)f->width, part = (uint32_t)((uint64_t)row * f->team->count / (uint32_t)f->height);
  while (part + 1 < f->team->count && first_row(f, part + 1) <= row) part++;
  while (first_row(f, part) > row) part--;
  return part;
}

struct fabric *part_of(struct fabric *f, uint32_t node) {
  return f->team ? f->team->members[part_number(f, node)].part : f;
}

static struct trace *trace_like(const struct trace *t) {
  struct trace *other = trace_create();
  if (!other) abort();
  other->of_chosen = t->of_chosen;
  return other;
}

static struct fabric *another_part(const struct fabric *first, uint32_t number) {
  struct fabric *f = malloc(sizeof *f);
  if (!f) abort();
  *f = *first;
  f->part = number;
  f->wheel = wheel_create();
  f->arena = arena_create();
  f->coroutines = coroutines_create();
  f->arrays = array_table_create();
  f->free_streams = NULL;
  f->end_names = NULL;
  f->trace = first->trace ? trace_like(first->trace) : NULL;
  return f;
}

static void hand_over(struct fabric *f, uint32_t number) {
  struct node *n = &f->nodes[number];
  uint32_t part = part_number(f, number);
  if (n->core) n->core->fabric = f->team->members[part].part;
  for (int i = 0; i < n->route_count; i++) {
    struct ring *r = &n->routes[i].ring;
    r->remote = r->producer_kind == END_ROUTER && part_number(f, r->producer) != part;
  }
}

void team_form(struct fabric *f, int32_t threads) {
  int32_t most = threads < f->height ? threads : f->height;
  if (most > MOST_PARTS) most = MOST_PARTS;
  if (most < 2 || f->failure.present) return;
  struct team *t = f->team = aligned_alloc(64, sizeof *t);
  if (!t) abort();
  memset(t, 0, sizeof *t);
  t->count = (uint32_t)most;
  t->spins = sysconf(_SC_NPROCESSORS_ONLN) >= most ? SPINS : 0;
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->met, NULL);
  t->members[0].part = f;
  for (uint32_t k = 1; k < t->count; k++) t->members[k].part = another_part(f, k);
  for (uint32_t number = 0; number < f->node_count; number++) hand_over(f, number);
}

/* ---- Letters ---- */

static void post(struct fabric *f, uint32_t to, struct letter letter, int64_t concerns) {
  struct member *m = &f->team->members[f->part];
  struct letters *out = &m->out[m->turn][to];
  if (out->count == out->capacity) {
    out->capacity = out->capacity ? 2 * out->capacity : 256;
    if (!(out->list = realloc(out->list, out->capacity * sizeof *out->list))) abort();
  }
  out->list[out->count++] = letter;
  m->first_letter = earlier(m->first_letter, concerns);
}

void mail_push(struct fabric *f, struct ring *r, int64_t at) {
  post(f, part_number(f, r->consumer), (struct letter){.ring = r, .at = at, .push = true}, at);
}

void mail_pop(struct fabric *f, struct ring *r, uint8_t slot, int64_t at) {
  post(f, part_number(f, r->producer), (struct letter){.ring = r, .at = at, .slot = slot}, at + 1);
}

static void read_letters(struct fabric *f, int turn) {
  struct team *t = f->team;
  for (uint32_t k = 0; k < t->count; k++) {
    const struct letters *in = &t->members[k].out[turn][f->part];
    for (size_t i = 0; i < in->count; i++) {
      const struct letter *l = &in->list[i];
      if (l->push) ring_announce(f, l->ring, l->at);
      else ring_freed(f, l->ring, l->slot, l->at);
    }
  }
}

/* ---- Cycles ---- */

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void open_gate(struct team *t, unsigned generation) {
  atomic_store(&t->arrived, 0);
  pthread_mutex_lock(&t->lock);
  atomic_store(&t->generation, generation + 1);
  pthread_mutex_unlock(&t->lock);
  pthread_cond_broadcast(&t->met);
}

static void sleep_at_gate(struct team *t, unsigned generation) {
  pthread_mutex_lock(&t->lock);
  while (atomic_load(&t->generation) == generation) pthread_cond_wait(&t->met, &t->lock);
  pthread_mutex_unlock(&t->lock);
}

/* A barrier: spins for a short time, then sleeps, for the processors may have other work. */
static void meet(struct team *t) {
  unsigned generation = atomic_load(&t->generation);
  if (atomic_fetch_add(&t->arrived, 1) + 1 == t->count) {
    open_gate(t, generation);
    return;
  }
  for (int spins = 0; spins < t->spins; spins++) {
    if (atomic_load(&t->generation) != generation) return;
    relax();
  }
  sleep_at_gate(t, generation);
}

/* What all parts say of the cycle that has ended. */
static struct news all_news(const struct team *t, int turn) {
  struct news all = {.next = NEVER};
  for (uint32_t k = 0; k < t->count; k++) {
    const struct news *n = &t->members[k].news[turn];
    all.next = earlier(all.next, n->next);
    all.visited |= n->visited;
    all.failed |= n->failed;
    all.quit |= n->quit;
    all.events += n->events;
  }
  return all;
}

static void tell(struct fabric *f, bool visited) {
  struct member *m = &f->team->members[f->part];
  m->news[m->turn] = (struct news){.next = earlier(next_cycle(f), m->first_letter), .events = f->statistics.events,
                                   .visited = visited, .failed = f->failure.present};
}

bool team_step(struct fabric *f) {
  struct team *t = f->team;
  struct member *m = &t->members[f->part];
  int turn = m->turn;
  for (uint32_t k = 0; k < t->count; k++) m->out[turn][k].count = 0;
  m->first_letter = NEVER;
  bool visited = visit_cycle(f, m->upcoming);
  if (visited) m->last_visit = m->upcoming;
  tell(f, visited);
  meet(t);
  struct news all = all_news(t, turn);
  if (all.quit) return false;
  read_letters(f, turn);
  bool over = all.visited && m->upcoming > f->max_cycles;
  m->upcoming = all.next;
  m->turn = !turn;
  return !all.failed && !over && all.next != NEVER;
}

/* ---- Threads ---- */

static void *work(void *part) {
  while (team_step(part)) continue;
  return NULL;
}

void team_begin(struct fabric *f) {
  struct team *t = f->team;
  if (t->begun) return;
  t->begun = true;
  int64_t first = NEVER;
  for (uint32_t k = 0; k < t->count; k++) first = earlier(first, next_cycle(t->members[k].part));
  for (uint32_t k = 0; k < t->count; k++) t->members[k].upcoming = first;
  for (uint32_t k = 1; k < t->count; k++)
    if (pthread_create(&t->members[k].thread, NULL, work, t->members[k].part)) abort();
}

static void add_up(struct statistics *to, const struct statistics *s) {
  to->events += s->events;
  to->wavelets += s->wavelets;
  to->hops += s->hops;
  to->simd_operations += s->simd_operations;
  to->simd_instructions += s->simd_instructions;
}

/* The failure that counts is that of the first node: all parts fail in the same cycle. */
static void take_in(struct fabric *f, const struct member *m) {
  const struct fabric *part = m->part;
  add_up(&f->statistics, &part->statistics);
  if (f->trace) trace_append(f, part->trace);
  f->last_activity = later(f->last_activity, part->last_activity);
  f->now = later(f->now, m->last_visit);
  if (!part->failure.present || (f->failure.present && f->failure_node < part->failure_node)) return;
  f->failure = part->failure;
  f->failure_node = part->failure_node;
}

void team_join(struct fabric *f) {
  struct team *t = f->team;
  if (t->joined) return;
  t->joined = true;
  f->now = t->members[0].last_visit;
  for (uint32_t k = 1; k < t->count; k++) {
    pthread_join(t->members[k].thread, NULL);
    take_in(f, &t->members[k]);
  }
}

int64_t team_events(const struct fabric *f) {
  const struct team *t = f->team;
  if (t->joined) return f->statistics.events;
  return all_news(t, !t->members[0].turn).events;
}

static void dismiss(struct fabric *f) {
  struct team *t = f->team;
  if (!t->begun || t->joined) return;
  struct member *m = &t->members[0];
  m->news[m->turn] = (struct news){.next = NEVER, .quit = true};
  meet(t);
  for (uint32_t k = 1; k < t->count; k++) pthread_join(t->members[k].thread, NULL);
}

static void destroy_member(struct member *m) {
  struct fabric *f = m->part;
  for (int turn = 0; turn < 2; turn++)
    for (int k = 0; k < MOST_PARTS; k++) free(m->out[turn][k].list);
  if (!f->part) return;
  trace_destroy(f->trace);
  free(f->arrays);
  coroutines_destroy(f->coroutines);
  wheel_destroy(f->wheel);
  arena_destroy(f->arena);
  free(f);
}

void team_destroy(struct fabric *f) {
  struct team *t = f->team;
  if (!t) return;
  dismiss(f);
  for (uint32_t k = 0; k < t->count; k++) destroy_member(&t->members[k]);
  pthread_mutex_destroy(&t->lock);
  pthread_cond_destroy(&t->met);
  free(t);
}
