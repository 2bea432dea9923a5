/* The main thread of a PE of a CSL program: which task runs next, and what is due when one has ended.
 *
 * As for layers (tasks.c) a task executes at once when it starts; its costs move the PE's clock ahead. Any task may wait. */
#include "csl_fabric.h"

static const int64_t CSL_ENDLESS = (int64_t)1 << 32; /* cycles that a task may run without waiting */

static void csl_set_limit(struct core *c) {
  c->pe.limit = earlier(c->pe.clock + CSL_ENDLESS, c->fabric->max_cycles);
}

void csl_wake(struct csl_core *c, int64_t at) {
  struct core *core = &c->core;
  if (core->state == CORE_FAILED || (core->state >= CORE_WAITS_OUTPUT && core->state != CORE_FREE)) return;
  if (core->state == CORE_WAITS_INPUT) wake_core(core, later(at, core->fabric->now + 1));
  else if (core->state == CORE_FREE) wake_core(core, later(later(at, core->pe.clock), core->fabric->now + 1));
}

/* ---- What waits for the main thread ---- */

enum { NOTHING = -1, TEARDOWN_NEXT = -2, CALL_NEXT = -3, LOCAL_NEXT = 0, RING_NEXT = 64 };

static struct ring *ring_number(struct csl_core *c, int number) {
  return number < CSL_QUEUES ? c->inputs[number] : c->of_color[number - CSL_QUEUES];
}

static int id_of_ring(struct csl_core *c, int number) {
  return number < CSL_QUEUES ? id_of_queue(c, number) : number - CSL_QUEUES;
}

/* When a wavelet of the ring can start a task: NEVER if none is there, or if it waits for an operation or for @unblock. */
static int64_t ring_start(struct csl_core *c, int number) {
  struct ring *r = ring_number(c, number);
  if (!r || !ring_head(r)->full || (number < CSL_QUEUES && c->queue_reads >> number & 1)) return NEVER;
  int id = id_of_ring(c, number);
  if (id >= CSL_IDS || c->blocked >> id & 1) return NEVER;
  if (!(ring_head(r)->tag & TAG_CONTROL) && !c->data[id]) return NEVER;
  return ring_head(r)->time;
}

static uint32_t ready_local(const struct csl_core *c) { return c->activated & ~(uint32_t)c->blocked; }

static bool queue_is_empty(struct csl_core *c, bool output, int queue) {
  struct ring *r = output ? c->outputs[queue] : c->inputs[queue];
  if (!r) return true;
  for (int i = 0; i < r->capacity; i++)
    if (r->slots[i].full || (output && r->slots[i].time > c->core.fabric->now)) return false;
  return true;
}

/* Queues whose flush was asked for and that are empty now: of these the teardown task runs the handlers. */
static void note_flushes(struct csl_core *c) {
  for (int q = 0; q < CSL_QUEUES; q++) {
    if (c->flush_out >> q & 1 && queue_is_empty(c, true, q)) c->flush_out &= ~(1u << q), c->flushed_out |= 1u << q | 1u << (q + 16);
    if (c->flush_in >> q & 1 && queue_is_empty(c, false, q)) c->flush_in &= ~(1u << q), c->flushed_in |= 1u << q | 1u << (q + 16);
  }
}

static bool teardown_due(const struct csl_core *c) {
  return !(c->blocked >> TEARDOWN_TASK & 1) && (c->teardown || c->flushed_in >> 16 || c->flushed_out >> 16);
}

static int next_local(const struct csl_core *c, uint64_t ids) {
  uint32_t ready = ready_local(c) & (uint32_t)ids, after = c->next_local < 32 ? ready & ~0u << c->next_local : 0;
  return ready ? LOCAL_NEXT + __builtin_ctz(after ? after : ready) : NOTHING;
}

static int next_from_rings(struct csl_core *c, uint64_t ids, int64_t now, int64_t *later_at) {
  for (int i = 0; i < CSL_QUEUES + CSL_COLORS; i++) {
    int k = (c->next_ring + i) % (CSL_QUEUES + CSL_COLORS);
    int64_t at = ring_start(c, k);
    if (at != NEVER && !(ids >> id_of_ring(c, k) & 1)) continue;
    if (at <= now) return RING_NEXT + k;
    *later_at = earlier(*later_at, at);
  }
  return NOTHING;
}

/* What runs next of these ids. Nobody starves: a local task that activates itself again and again lets the others, and
 * wavelets, have their turn. */
static int next_among(struct csl_core *c, uint64_t ids, bool calls, int64_t now, int64_t *later_at) {
  int local = next_local(c, ids);
  if (local != NOTHING && !c->local_ran) return local;
  int ring = next_from_rings(c, ids, now, later_at);
  if (ring != NOTHING) return ring;
  if (calls && c->calls && !c->command_runs) return CALL_NEXT;
  return local;
}

/* What runs next of what is there at `now`, tasks of low priority after all others; *later_at: when something else may be. */
static int next_task(struct csl_core *c, int64_t now, int64_t *later_at) {
  *later_at = NEVER;
  note_flushes(c);
  if (teardown_due(c)) return TEARDOWN_NEXT;
  int next = next_among(c, ~c->low_priority, true, now, later_at);
  return next == NOTHING && c->low_priority ? next_among(c, c->low_priority, false, now, later_at) : next;
}

/* ---- Running ---- */

static void finish_task(struct csl_core *c) {
  struct core *core = &c->core;
  struct fabric *f = core->fabric;
  core->pe.clock = later(core->pe.clock, core->began + 1);
  core->busy += core->pe.clock - core->began - core->waited;
  if (f->trace) {
    charge_line(core);
    trace_add(f, TRACE_TASK, core->number, 0, core->job.name, core->began, core->pe.clock);
  }
  core->state = CORE_FREE;
  f->last_activity = later(f->last_activity, core->pe.clock);
  int64_t later_at;
  if (next_task(c, core->pe.clock, &later_at) != NOTHING) later_at = core->pe.clock;
  if (later_at != NEVER) wake_core(core, later(later(later_at, core->pe.clock), f->now + 1));
}

static void after_running(struct csl_core *c) {
  if (!c->core.coroutine && c->core.state != CORE_FAILED) finish_task(c);
}

static void begin_task(struct csl_core *c, void (*run)(void), const char *name, int64_t now, int dispatch_cycles) {
  struct core *core = &c->core;
  core->job = (struct job){.run = run, .name = name, .blocking = true};
  core->began = core->charged_until = now;
  core->waited = core->charged_waits = 0;
  if (core->fabric->trace) enter_line(core, 0, NULL);
  core->pe.clock = now + dispatch_cycles;
  core->state = CORE_SLEEPS;
  core->fabric->statistics.events++;
  csl_set_limit(core);
  coroutine_start(core);
  after_running(c);
}

static void run_csl_task(void) {
  struct csl_core *c = this_csl();
  c->task->run(c->wavelet);
}

static void run_call(void) {
  struct csl_core *c = this_csl();
  c->call->function->run(c->call->words);
}

static void run_handlers_of(struct csl_core *c, int of, uint32_t numbers) {
  const struct csl_handler *h = c->program->handlers;
  for (; h && h->of; h++)
    if (h->of == of && h->number < 32 && numbers >> h->number & 1) h->run();
}

static void run_teardown(void) {
  struct csl_core *c = this_csl();
  uint32_t colors = c->teardown, in = c->flushed_in >> 16, out = c->flushed_out >> 16;
  c->teardown = 0;
  c->flushed_in &= 0xffff;
  c->flushed_out &= 0xffff;
  run_handlers_of(c, CSL_OF_TEARDOWN, colors);
  run_handlers_of(c, CSL_OF_INPUT_QUEUE, in);
  run_handlers_of(c, CSL_OF_OUTPUT_QUEUE, out);
}

static void start_local_task(struct csl_core *c, int id, int64_t now) {
  const struct csl_task *t = c->local[id];
  c->activated &= ~(1u << id);
  c->next_local = id + 1;
  c->local_ran = true;
  if (!t) {
    c->core.state = CORE_FAILED;
    fail_node(c->core.fabric, c->core.number, "unknown-task", NULL, "task id %d was activated, but no task is bound to it", id);
    return;
  }
  c->task = t;
  c->wavelet = 0;
  begin_task(c, run_csl_task, t->name, now, c->core.fabric->machine.local_task_activate);
}

static void start_from_ring(struct csl_core *c, int number, int64_t now) {
  struct ring *r = ring_number(c, number);
  struct slot s = *ring_head(r);
  bool control = s.tag & TAG_CONTROL;
  int entry = s.payload >> 16 & 63;
  const struct csl_task *t = control ? c->control[entry] : c->data[id_of_ring(c, number)];
  csl_pop(c->core.fabric, r, now);
  c->next_ring = (number + 1) % (CSL_QUEUES + CSL_COLORS);
  c->local_ran = false;
  if (!t) {
    c->core.state = CORE_FAILED;
    fail_node(c->core.fabric, c->core.number, "no-control-task", NULL,
              "a control wavelet of color %d names control task %d, but none is bound to that id", s.tag & TAG_COLOR, entry);
    return;
  }
  c->task = t;
  c->wavelet = control ? s.payload & 0xffff : s.payload;
  begin_task(c, run_csl_task, t->name, now, c->core.fabric->machine.data_task_dispatch);
}

static void start_call(struct csl_core *c, int64_t now) {
  c->call = c->calls;
  c->calls = c->calls->next;
  if (!c->calls) c->last_call = &c->calls;
  c->command_runs = true;
  c->local_ran = false;
  begin_task(c, run_call, c->call->function->name, now, c->core.fabric->machine.data_task_dispatch);
}

static void choose_next(struct csl_core *c, int64_t now) {
  int64_t later_at;
  int next = next_task(c, now, &later_at);
  if (next == TEARDOWN_NEXT) begin_task(c, run_teardown, "teardown", now, c->core.fabric->machine.local_task_activate);
  else if (next == CALL_NEXT) start_call(c, now);
  else if (next >= RING_NEXT) start_from_ring(c, next - RING_NEXT, now);
  else if (next >= LOCAL_NEXT) start_local_task(c, next, now);
  else if (later_at != NEVER) wake_core(&c->core, later(later_at, now + 1));
}

void core_step(struct core *core, int64_t now) {
  struct csl_core *c = (struct csl_core *)core;
  if (core->state == CORE_FAILED) return;
  if (core->state <= CORE_SLEEPS && core->pe.clock > now) { /* microthreads took cycles meanwhile */
    wake_core(core, core->pe.clock);
    return;
  }
  if (core->state == CORE_FREE) choose_next(c, now);
  else {
    csl_set_limit(core);
    coroutine_resume(core);
    after_running(c);
  }
}

/* ---- Waiting ---- */

void csl_wait(struct csl_core *c, enum core_state state, int queue, const struct pe_site *site) {
  c->core.state = (uint8_t)state;
  c->core.waits_queue = (uint8_t)queue;
  c->core.waits_site = site;
  c->core.waits_since = c->core.pe.clock;
  coroutine_yield(&c->core);
  c->core.state = CORE_SLEEPS;
}

/* With microthreads at work the main thread's clock is not known ahead: go on when the cycle has come. */
void csl_sleep_until_clock(struct csl_core *c) {
  while (c->core.pe.clock > c->core.fabric->now) {
    wake_core(&c->core, c->core.pe.clock);
    c->core.state = CORE_SLEEPS;
    coroutine_yield(&c->core);
  }
}
