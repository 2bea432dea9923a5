/* What a task may do with queues and with other tasks; and how it waits.
 *
 * An operation is carried out at once where its outcome is known already, with the cycle that it happens at, which may
 * lie ahead: a wavelet that has come or is on the ramp, a slot that is free. Otherwise the task is left. */
#include <string.h>

#include "fabric.h"

/* ---- Waiting ---- */

/* Leaves the task; something wakes it, perhaps in vain. */
void wait_here(struct core *c, enum core_state state, int queue, const struct pe_site *site) {
  c->state = (uint8_t)state;
  c->waits_queue = (uint8_t)queue;
  c->waits_site = site;
  c->waits_since = c->pe.clock;
  coroutine_yield(c);
  c->state = CORE_SLEEPS;
}

/* With microthreads at work the main thread's clock is not known ahead: go on when the cycle has come. */
void sleep_until_clock(struct core *c) {
  while (c->stream_count && c->pe.clock > c->fabric->now) {
    wake_core(c, c->pe.clock);
    c->state = CORE_SLEEPS;
    coroutine_yield(c);
  }
}

static void pass_time(struct core *c, int64_t until, const struct pe_site *site) {
  if (until <= c->pe.clock) return;
  struct fabric *f = c->fabric;
  if (f->trace) trace_add_at(f, TRACE_WAIT, c->number, 0, site, site->text, c->pe.clock, until);
  c->waited += until - c->pe.clock;
  c->pe.clock = until;
}

/* The slot at the head of an input queue, once it is full; the clock moves on to its arrival. */
struct slot *await_element(struct core *c, int queue, const struct pe_site *site) {
  struct ring *r = &c->inputs[queue].ring;
  struct slot *s = ring_head(r);
  while (!s->full) wait_here(c, CORE_WAITS_INPUT, queue, site);
  pass_time(c, s->time, site);
  sleep_until_clock(c);
  return s;
}

/* The ring behind an output queue, once its tail is free; the clock moves on to that cycle. */
struct ring *await_room(struct core *c, int queue, const struct pe_site *site) {
  struct ring *r = output_ring(c, queue, site);
  const struct slot *s = ring_tail(r);
  while (s->full) {
    r->producer_waits = 1;
    wait_here(c, CORE_WAITS_OUTPUT, queue, site);
  }
  pass_time(c, s->time + 1, site);
  sleep_until_clock(c);
  return r;
}

/* ---- What tasks do with queues ---- */

void require_blocking(struct core *c, const struct pe_site *site) {
  if (!c->job.blocking)
    fail_task(c, "not-blocking", site, "%s in a task that may not wait; declare it BLOCKING", site->text);
}

static bool valid_queue(int queue, int32_t count) { return queue >= 0 && queue < count; }

struct ring *output_ring(struct core *c, int queue, const struct pe_site *site) {
  if (!valid_queue(queue, c->fabric->machine.output_queues))
    fail_task(c, "too-many-queues", site, "there is no output queue %d: the machine has %d", queue,
              c->fabric->machine.output_queues);
  if (!c->outputs[queue]) fail_task(c, "unbound-queue", site, "output queue %d is bound to no color", queue);
  return c->outputs[queue];
}

/* The main thread or a microthread may read a queue that no data task can take wavelets from meanwhile. */
void check_readable(struct core *c, int queue, const struct pe_site *site) {
  if (!valid_queue(queue, c->fabric->machine.input_queues))
    fail_task(c, "too-many-queues", site, "there is no input queue %d: the machine has %d", queue,
              c->fabric->machine.input_queues);
  const struct queue *q = &c->inputs[queue];
  if (!q->ring.capacity) fail_task(c, "unbound-queue", site, "input queue %d is bound to no color", queue);
  if (q->stream_reads) fail_task(c, "queue-in-use", site, "a microthread reads input queue %d already", queue);
  if (c->role->inputs[queue].form != PE_NO_DATA_TASK && c->unblocked >> queue & 1)
    fail_task(c, "queue-in-use", site, "input queue %d is unblocked: its data task takes the wavelets", queue);
}

/* The data of a wavelet of the expected kind. */
uint32_t wavelet_data(struct core *c, const struct slot *s, uint8_t tag, int queue, const struct pe_site *site) {
  if (s->tag != tag && s->tag != TAG_EXTERNAL)
    fail_task(c, "wavelet-type", site, "%s expects %s from input queue %d, but %s came", site->text, tag_text(tag), queue,
              tag_text(s->tag));
  return s->payload;
}

uint32_t pe_receive(int queue, enum pe_type type, const struct pe_site *site) {
  struct core *c = this_core();
  require_blocking(c, site);
  check_readable(c, queue, site);
  sleep_until_clock(c);
  struct slot *s = await_element(c, queue, site);
  uint32_t data = wavelet_data(c, s, (uint8_t)type, queue, site);
  ring_pop(c->fabric, &c->inputs[queue].ring, c->pe.clock);
  c->pe.clock += c->fabric->machine.receive;
  return data;
}

static void send_wavelet(int queue, uint32_t payload, uint8_t tag, const struct pe_site *site) {
  struct core *c = this_core();
  struct fabric *f = c->fabric;
  require_blocking(c, site);
  for (int i = 0; i < c->stream_count; i++)
    if (c->streams[i]->output == queue) fail_task(c, "queue-in-use", site, "a microthread feeds output queue %d already", queue);
  sleep_until_clock(c);
  struct ring *r = await_room(c, queue, site);
  c->pe.clock += f->machine.send;
  f->statistics.wavelets++;
  ring_push(f, r, c->pe.clock + f->machine.ramp_latency, payload, tag);
}

void pe_send(int queue, enum pe_type type, uint32_t bits, const struct pe_site *site) {
  send_wavelet(queue, bits, (uint8_t)type, site);
}

void pe_send_sparse(int queue, uint32_t index, enum pe_type type, uint32_t bits, const struct pe_site *site) {
  struct core *c = this_core();
  if (type_bytes((uint8_t)type) != 2) fail_task(c, "wavelet-type", site, "a sparse wavelet carries a 16-bit value");
  if (index > 0xffff) fail_task(c, "index-range", site, "the index %u does not fit into 16 bits", index);
  send_wavelet(queue, index << 16 | bits, TAG_SPARSE | (uint8_t)type, site);
}

void pe_send_end(int queue, const struct pe_site *site) { send_wavelet(queue, 0, TAG_CONTROL, site); }

void pe_turn_switches(int queue, int count, const struct pe_site *site) { send_wavelet(queue, (uint32_t)count, TAG_TURN, site); }

/* ---- What tasks do with tasks ---- */

int task_number(struct core *c, const char *name, const struct pe_site *site) {
  const struct pe_task *tasks = c->role->tasks;
  for (int i = 0; i < PE_MOST_TASKS && tasks[i].name; i++)
    if (tasks[i].name == name || !strcmp(tasks[i].name, name)) return i;
  fail_task(c, "unknown-task", site, "the role has no task %s", name);
}

void pe_activate(const char *task, const struct pe_site *site) {
  struct core *c = this_core();
  c->activated |= 1u << task_number(c, task, site);
}

void pe_set_blocked(int queue, bool blocked, const struct pe_site *site) {
  struct core *c = this_core();
  if (!valid_queue(queue, c->fabric->machine.input_queues))
    fail_task(c, "too-many-queues", site, "there is no input queue %d: the machine has %d", queue,
              c->fabric->machine.input_queues);
  if (blocked) c->unblocked &= ~(1u << queue);
  else c->unblocked |= 1u << queue;
}

bool pe_next_invocation(void) {
  struct core *c = this_core();
  if (c->invocations >= c->fabric->invocations) return false;
  c->invocations++;
  return true;
}
