/* The main thread of a PE: which task runs next, and what a task may do with queues and other tasks.
 *
 * A task executes at once when it starts; its costs move the PE's clock ahead. The PE is free again at that cycle. A
 * task that waits, or that must know what microthreads have done meanwhile, is left and taken up again later. */
#include <stdio.h>

#include "fabric.h"

static const int64_t ENDLESS = (int64_t)1 << 32; /* cycles that a task may run without waiting */

static void set_limit(struct core *c) {
  c->pe.limit = earlier(c->pe.clock + ENDLESS, c->fabric->max_cycles);
}

/* ---- Starting tasks ---- */

#ifdef PE_COUNTED
static void compare(struct core *c, const char *what, int done, int declared) {
  if (done <= declared) return;
  fail_node(c->fabric, c->number, "cost", NULL, "task %s did %d %s, its cost() declares %d", c->job.name, done, what, declared);
  c->state = CORE_FAILED;
}

/* Loads, stores and branches of scalar code, from the accesses that are checked anyhow. */
static void check_cost(struct core *c) {
  compare(c, "loads", c->pe.done.loads, c->pe.declared.loads);
  compare(c, "stores", c->pe.done.stores, c->pe.declared.stores);
  if (c->job.run != c->role->main) /* its branches are on coordinates: settled when the PE's code is loaded */
    compare(c, "branches", c->pe.done.branches, c->pe.declared.branches);
  c->pe.done = c->pe.declared = (struct pe_work){0};
}
#endif

/* A task takes at least one cycle. */
static void finish_job(struct core *c) {
  struct fabric *f = c->fabric;
  c->pe.clock = later(c->pe.clock, c->began + 1);
  c->busy += c->pe.clock - c->began - c->waited;
  if (f->trace) {
    charge_line(c);
    trace_add(f, TRACE_TASK, c->number, 0, c->job.name, c->began, c->pe.clock);
  }
  c->state = CORE_FREE;
  f->last_activity = later(f->last_activity, c->pe.clock);
#ifdef PE_COUNTED
  check_cost(c);
#endif
}

/* A control wavelet needs an end task, a data wavelet a data task; otherwise it stays for receive(). */
static bool has_task(const struct core *c, int queue, const struct slot *s) {
  const struct pe_input *in = &c->role->inputs[queue];
  return s->tag & TAG_CONTROL ? true : in->form != PE_NO_DATA_TASK;
}

static bool may_dispatch(const struct core *c, int queue) {
  const struct queue *q = &c->inputs[queue];
  return q->ring.capacity && !q->stream_reads && ring_head((struct ring *)&q->ring)->full &&
         has_task(c, queue, ring_head((struct ring *)&q->ring));
}

/* When the PE has a next task to start: NEVER if an arrival must wake it. */
static int64_t next_start(const struct core *c) {
  if (c->activated) return c->pe.clock;
  int64_t at = NEVER;
  for (uint32_t set = c->unblocked; set; set &= set - 1) {
    int queue = __builtin_ctz(set);
    if (may_dispatch(c, queue)) at = earlier(at, ring_head(&c->inputs[queue].ring)->time);
  }
  return at == NEVER ? NEVER : later(at, c->pe.clock);
}

static void after_task(struct core *c) {
  if (c->coroutine || c->state == CORE_FAILED) return;
  finish_job(c);
  int64_t at = next_start(c);
  if (at != NEVER) wake_core(c, at);
}

static void start(struct core *c, struct job job, int64_t now, int dispatch_cycles) {
  c->job = job;
  c->began = now;
  c->waited = 0;
  c->pe.clock = c->charged_until = now;
  c->charged_waits = 0;
  if (c->fabric->trace) enter_line(c, 0, NULL);
  c->pe.clock = now + dispatch_cycles;
  c->state = CORE_SLEEPS;
  c->fabric->statistics.events++;
  set_limit(c);
  coroutine_start(c);
  after_task(c);
}

static void start_local(struct core *c, int64_t now) {
  const struct pe_task *task = &c->role->tasks[__builtin_ctz(c->activated)];
  c->activated &= c->activated - 1;
  start(c, (struct job){.run = task->run, .name = task->name, .blocking = task->blocking}, now,
        c->fabric->machine.local_task_activate);
}

static const uint8_t TAG_OF_FORM[] = {
    [PE_SPARSE_HALF] = TAG_SPARSE | PE_TYPE_half, [PE_SPARSE_INT16] = TAG_SPARSE | PE_TYPE_int16_t,
    [PE_DENSE_HALF] = PE_TYPE_half,               [PE_DENSE_FLOAT] = PE_TYPE_float,
    [PE_DENSE_INT16] = PE_TYPE_int16_t,           [PE_DENSE_INT32] = PE_TYPE_int32_t};

/* A control task is known by the data task of its queue. */
static const char *end_task_name(struct fabric *f, const struct pe_input *in) {
  if (!in->name) return "end of chunk";
  struct end_name *n = f->end_names;
  while (n && n->input != in) n = n->next;
  if (n) return n->text;
  n = arena_take(f->arena, sizeof *n);
  *n = (struct end_name){.input = in, .next = f->end_names};
  snprintf(n->text, sizeof n->text, "end of %s", in->name);
  f->end_names = n;
  return n->text;
}

static void start_end_task(struct core *c, int queue, int64_t now) {
  const struct pe_input *in = &c->role->inputs[queue];
  if (!in->end) {
    c->pe.clock = now;
    c->state = CORE_FAILED;
    fail_node(c->fabric, c->number, "no-end-task", NULL, "an end of chunk came to input queue %d, which has no control task",
              queue);
    return;
  }
  start(c, (struct job){.run = in->end, .name = end_task_name(c->fabric, in), .blocking = in->blocking}, now,
        c->fabric->machine.data_task_dispatch);
}

static void start_queue_task(struct core *c, int queue, int64_t now) {
  struct ring *r = &c->inputs[queue].ring;
  const struct pe_input *in = &c->role->inputs[queue];
  struct slot s = *ring_head(r);
  ring_pop(c->fabric, r, now);
  c->next_queue = (uint8_t)(queue + 1);
  if (s.tag & TAG_CONTROL) {
    start_end_task(c, queue, now);
    return;
  }
  if (s.tag != TAG_EXTERNAL && s.tag != TAG_OF_FORM[in->form]) {
    c->state = CORE_FAILED;
    fail_node(c->fabric, c->number, "wavelet-type", NULL, "%s of input queue %d takes %s, but %s came", in->name, queue,
              tag_text(TAG_OF_FORM[in->form]), tag_text(s.tag));
    return;
  }
  start(c, (struct job){.input = in, .payload = s.payload, .name = in->name, .blocking = in->blocking}, now,
        c->fabric->machine.data_task_dispatch);
}

static bool ready(struct core *c, int queue, int64_t now) {
  return may_dispatch(c, queue) && ring_head(&c->inputs[queue].ring)->time <= now;
}

/* The queue whose turn it is among those with a task to start now; -1 if there is none. */
static int choose_queue(struct core *c, int64_t now) {
  uint32_t turn = c->next_queue < 32 ? ~0u << c->next_queue : 0;
  for (uint32_t set = c->unblocked & turn; set; set &= set - 1)
    if (ready(c, __builtin_ctz(set), now)) return __builtin_ctz(set);
  for (uint32_t set = c->unblocked & ~turn; set; set &= set - 1)
    if (ready(c, __builtin_ctz(set), now)) return __builtin_ctz(set);
  return -1;
}

static void choose_task(struct core *c, int64_t now) {
  if (c->activated) {
    start_local(c, now);
    return;
  }
  int queue = choose_queue(c, now);
  if (queue >= 0) {
    start_queue_task(c, queue, now);
    return;
  }
  int64_t at = next_start(c);
  if (at != NEVER) wake_core(c, later(at, now + 1));
}

static void start_main(struct core *c) {
  c->started = 1;
  start(c, (struct job){.run = c->role->main, .name = "main"}, 0, 0);
}

void core_step(struct core *c, int64_t now) {
  if (c->state == CORE_FAILED) return;
  if (c->state <= CORE_SLEEPS && c->pe.clock > now) { /* microthreads took cycles meanwhile */
    wake_core(c, c->pe.clock);
    return;
  }
  if (!c->started) start_main(c);
  else if (c->state == CORE_FREE) choose_task(c, now);
  else {
    set_limit(c);
    coroutine_resume(c);
    after_task(c);
  }
}
