/* SIMD instructions with operands of the fabric: one wavelet a cycle, as wavelets come and as there is room. It holds one
 * element, or two of 16 bits; these take two cycles where width or strides allow one element a cycle only.
 *
 * The main thread waits for its own (invoke_simd); microthreads (start_simd) run beside it. All share one engine: it
 * issues for one of them a cycle, in rotation. While the main thread computes, a microthread gets at most every second
 * cycle, and the main thread ends one cycle later for each. */
#include <string.h>

#include "fabric.h"

enum { COMPLETE = -1 }; /* the lane of an instruction of the main thread that is done */

/* ---- Setting up ---- */

static void check_pairs(struct core *c, const struct stream *s, uint8_t type) {
  if (type_bytes(type) != 2)
    fail_task(c, "operand", s->site, "%s: two elements of %s do not fit into a wavelet", s->instruction->name, tag_text(type));
}

static void set_destination(struct core *c, struct stream *s, const struct descriptor *d) {
  s->output = -1;
  s->to_nest = *d;
  s->left = d->elements;
  if (d->kind == OPERAND_OUTPUT) {
    output_ring(c, d->queue, s->site);
    s->output = d->queue;
    s->pairs = d->pairs;
    if (d->pairs) check_pairs(c, s, s->instruction->to_type);
    return;
  }
  if (d->kind == OPERAND_INPUT)
    fail_task(c, "operand", s->site, "%s: the destination is an input queue", s->instruction->name);
  check_operand(c, s->instruction, d, s->instruction->to_type, d->elements, s->site);
}

static void set_fabric_source(struct core *c, struct stream *s, int k, const struct descriptor *d) {
  const char *name = s->instruction->name;
  if (d->kind == OPERAND_OUTPUT) fail_task(c, "operand", s->site, "%s: a source is an output queue", name);
  if (s->input >= 0) fail_task(c, "operand", s->site, "%s: two sources come from the fabric", name);
  if (d->elements != s->left)
    fail_task(c, "operand", s->site, "%s: one operand has %u elements, another %u", name, d->elements, s->left);
  if (s->output >= 0 && d->pairs != s->pairs)
    fail_task(c, "operand", s->site, "%s: one queue has two elements in a wavelet, the other one", name);
  check_readable(c, d->queue, s->site);
  s->input = d->queue;
  s->pairs = d->pairs;
  if (d->pairs) check_pairs(c, s, s->instruction->from_type[k]);
  s->source_kind[k] = OPERAND_INPUT;
}

static void set_source(struct core *c, struct stream *s, int k, const struct pe_source *given) {
  s->source_kind[k] = OPERAND_UNSET;
  s->scalars[k] = given->bits;
  if (given->type) {
    check_scalar(c, s->instruction, given->type, s->instruction->from_type[k], s->site);
    return;
  }
  const struct descriptor *d = descriptor_of(c, (operand){given->number}, s->site);
  if (d->kind >= OPERAND_INPUT) {
    set_fabric_source(c, s, k, d);
    return;
  }
  check_operand(c, s->instruction, d, s->instruction->from_type[k], s->left, s->site);
  s->source_kind[k] = OPERAND_MEMORY;
  s->source_nest[k] = *d;
}

static void set_up(struct core *c, struct stream *s, enum pe_instruction name, operand to, const struct pe_source *sources,
                   const struct pe_site *site) {
  s->instruction = &instructions[name];
  s->site = site;
  s->input = -1;
  set_destination(c, s, descriptor_of(c, to, site));
  for (int k = 0; k < s->instruction->sources; k++) set_source(c, s, k, &sources[k]);
  cursor_start(&s->to, &s->to_nest);
  for (int k = 0; k < s->instruction->sources; k++) cursor_start(&s->source[k], &s->source_nest[k]);
  for (int i = 0; i < c->stream_count; i++)
    if (s->output >= 0 && c->streams[i]->output == s->output)
      fail_task(c, "queue-in-use", site, "a microthread feeds output queue %d already", s->output);
  c->fabric->statistics.simd_operations += s->left;
  c->fabric->statistics.simd_instructions++;
}

/* ---- One element ---- */

static bool fast_operand(const struct cursor *k, uint8_t type) {
  return cursor_row_left(k) >= 2 && stride_limit(cursor_stride(k), type_bytes(type) / 2) >= 2;
}

/* Whether the engine executes both elements of a pair in one cycle. */
static bool both_at_once(const struct core *c, const struct stream *s) {
  const struct instruction *ins = s->instruction;
  if (c->fabric->machine.widths[ins - instructions] < 2) return false;
  if (s->output < 0 && !fast_operand(&s->to, ins->to_type)) return false;
  for (int k = 0; k < ins->sources; k++)
    if (s->source_kind[k] == OPERAND_MEMORY && !fast_operand(&s->source[k], ins->from_type[k])) return false;
  return true;
}

static bool fail_stream(struct core *c, const struct stream *s, const char *kind, const char *message) {
  fail_node(c->fabric, c->number, kind, s->site, "%s: %s", s->instruction->name, message);
  c->state = CORE_FAILED;
  return false;
}

static bool known_in_memory(const struct core *c, const struct cursor *k, uint8_t type) {
  const uint8_t *shadow = c->pe.shadow + k->offset / 2;
  return shadow[0] & shadow[type_bytes(type) / 2 - 1];
}

static bool take_wavelet(struct core *c, struct stream *s, int k, int64_t at) {
  if (s->half) {
    s->scalars[k] = s->held_input;
    return true;
  }
  uint8_t tag = s->instruction->from_type[k] | (s->pairs ? TAG_PAIR : 0);
  struct ring *r = &c->inputs[s->input].ring;
  const struct slot *slot = ring_head(r);
  if (slot->tag & TAG_CONTROL) return fail_stream(c, s, "wavelet-type", "an end of chunk came where elements were expected");
  if (slot->tag != TAG_EXTERNAL && slot->tag != tag)
    return fail_stream(c, s, "wavelet-type", "the wavelet that came has another type than the source");
  s->scalars[k] = s->pairs ? slot->payload & 0xffff : slot->payload;
  s->held_input = slot->payload >> 16;
  ring_pop(c->fabric, r, at);
  return true;
}

static bool put_result(struct core *c, struct stream *s, uint32_t result, bool known, int64_t at) {
  struct fabric *f = c->fabric;
  uint32_t bytes = type_bytes(s->instruction->to_type);
  if (s->output >= 0) {
    if (!known) return fail_stream(c, s, "poison", "an uninitialised value leaves the PE");
    if (s->pairs && !s->half && s->left) { /* left: without this element */
      s->held_output = result & 0xffff;
      return true;
    }
    uint32_t payload = s->half ? s->held_output | result << 16 : result;
    uint8_t tag = s->instruction->to_type | (s->pairs ? TAG_PAIR : 0);
    f->statistics.wavelets++;
    ring_push(f, c->outputs[s->output], at + 1 + f->machine.ramp_latency, payload, tag);
    return true;
  }
  memcpy(c->pe.memory + s->to.offset, &result, bytes);
  memset(c->pe.shadow + s->to.offset / 2, known, bytes / 2);
  cursor_advance(&s->to, 1);
  return true;
}

/* Executes one element at cycle `at`: its wavelet has come, and there is room for its result. */
static bool issue_element(struct core *c, struct stream *s, int64_t at) {
  const struct instruction *ins = s->instruction;
  unsigned char *pointers[MOST_SOURCES];
  static const long still[MOST_SOURCES];
  bool known = true;
  uint32_t result = 0;
  for (int k = 0; k < ins->sources; k++) {
    pointers[k] = (unsigned char *)&s->scalars[k];
    if (s->source_kind[k] == OPERAND_INPUT && !take_wavelet(c, s, k, at)) return false;
    if (s->source_kind[k] != OPERAND_MEMORY) continue;
    pointers[k] = c->pe.memory + s->source[k].offset;
    known &= known_in_memory(c, &s->source[k], ins->from_type[k]);
  }
  ins->run((unsigned char *)&result, 0, pointers, still, 1);
  for (int k = 0; k < ins->sources; k++)
    if (s->source_kind[k] == OPERAND_MEMORY) cursor_advance(&s->source[k], 1);
  s->left--;
  if (!put_result(c, s, result, known, at)) return false;
  s->half = s->pairs && !s->half && s->left;
  return true;
}

/* Executes what the engine can in cycle `at`: an element, or both of a pair. */
static bool issue(struct core *c, struct stream *s, int64_t at) {
  bool both = s->pairs && !s->half && s->left >= 2 && both_at_once(c, s);
  s->issued++;
  return issue_element(c, s, at) && (!both || issue_element(c, s, at));
}

/* ---- The main thread's own ---- */

static void run_alone(struct core *c, struct stream *s) {
  while (s->left) {
    if (s->input >= 0 && !s->half) await_element(c, s->input, s->site);
    if (s->output >= 0 && !s->half) await_room(c, s->output, s->site);
    if (!issue(c, s, c->pe.clock)) coroutine_abandon(c);
    c->pe.clock++;
  }
}

static void enlist(struct core *c, struct stream *s) {
  c->streams[c->stream_count++] = s;
  if (s->input >= 0) c->inputs[s->input].stream_reads = 1;
  wake_engine(c, later(s->from, c->fabric->now + 1));
}

static void run_beside_microthreads(struct core *c, struct stream *s) {
  sleep_until_clock(c);
  int64_t began = s->from = c->pe.clock;
  enlist(c, s);
  while (s->lane != COMPLETE) wait_here(c, CORE_WAITS_STREAM, 0, s->site);
  c->waited += s->from - began - s->issued;
  c->pe.clock = s->from;
}

void run_with_fabric(struct core *c, enum pe_instruction name, operand to, const struct pe_source *sources,
                     const struct pe_site *site) {
  struct stream s = {.task = -1};
  struct fabric *f = c->fabric;
  require_blocking(c, site);
  sleep_until_clock(c);
  set_up(c, &s, name, to, sources, site);
  int64_t began = c->pe.clock;
  c->pe.clock += f->machine.simd_launch;
  if (c->stream_count) run_beside_microthreads(c, &s);
  else run_alone(c, &s);
  if (f->trace) trace_add_at(f, TRACE_SIMD, c->number, 0, site, s.instruction->name, began, c->pe.clock);
}

/* ---- Microthreads ---- */

static struct stream *new_stream(struct fabric *f) {
  struct stream *s = f->free_streams;
  if (s) f->free_streams = s->next_free;
  else s = arena_take(f->arena, sizeof *s);
  *s = (struct stream){0};
  return s;
}

static int free_lane(const struct core *c) {
  uint32_t used = 1;
  for (int i = 0; i < c->stream_count; i++) used |= 1u << c->streams[i]->lane;
  return __builtin_ctz(~used);
}

void pe_start_simd(const char *task, enum pe_instruction name, operand destination, const struct pe_source *sources,
                   const struct pe_site *site) {
  struct core *c = this_core();
  struct fabric *f = c->fabric;
  int number = task_number(c, task, site);
  sleep_until_clock(c);
  if (c->stream_count >= f->machine.microthreads)
    fail_task(c, "too-many-microthreads", site, "%s: all %d microthreads are at work", site->text, f->machine.microthreads);
  struct stream *s = new_stream(f);
  set_up(c, s, name, destination, sources, site);
  if (s->input < 0 && s->output < 0)
    fail_task(c, "operand", site, "%s: start_simd needs an operand of the fabric", site->text);
  s->began = c->pe.clock;
  c->pe.clock += f->machine.simd_launch;
  s->task = number;
  s->lane = free_lane(c);
  s->from = c->pe.clock;
  enlist(c, s);
}

static void complete(struct core *c, int index, int64_t now) {
  struct fabric *f = c->fabric;
  struct stream *s = c->streams[index];
  memmove(&c->streams[index], &c->streams[index + 1], (size_t)(--c->stream_count - index) * sizeof *c->streams);
  if (c->next_stream > index) c->next_stream--;
  if (s->input >= 0) c->inputs[s->input].stream_reads = 0;
  if (s->task < 0) {
    s->lane = COMPLETE;
    wake_core(c, now);
    return;
  }
  if (f->trace)
    trace_add_at(f, TRACE_MICROTHREAD, c->number, s->lane, s->site, s->instruction->name, s->began, now);
  c->activated |= 1u << s->task;
  if (c->state == CORE_FREE) wake_core(c, later(now, c->pe.clock));
  s->next_free = f->free_streams;
  f->free_streams = s;
}

static void complete_all(struct core *c, int64_t now) {
  for (int i = c->stream_count - 1; i >= 0; i--)
    if (!c->streams[i]->left && c->streams[i]->from <= now) complete(c, i, now);
}

/* A microthread that finds its queue empty when it could go on sleeps, and takes some cycles to wake; the main thread,
 * which has nothing else to do, waits awake. */
static int64_t cycles_to_wake(const struct core *c, const struct stream *s, int64_t arrival) {
  return s->task >= 0 && arrival > s->from ? c->fabric->machine.microthread_wake : 0;
}

/* When the stream can execute its next element (or end): now, later, or NEVER: then something wakes the engine. */
static int64_t stream_ready(struct core *c, struct stream *s, int64_t now) {
  int64_t at = later(s->from, now);
  if (!s->left || s->half) return at; /* half: the second element of a pair needs nothing of the fabric */
  if (s->input >= 0) {
    const struct slot *head = ring_head(&c->inputs[s->input].ring);
    if (!head->full) return NEVER;
    at = later(at, head->time + cycles_to_wake(c, s, head->time));
  }
  if (s->output >= 0) {
    struct ring *r = c->outputs[s->output];
    if (ring_tail(r)->full) {
      r->producer_waits = 1;
      return NEVER;
    }
    at = later(at, ring_tail(r)->time + 1);
  }
  return at;
}

/* The stream whose turn it is among the ready ones, -1 if none is; *again: when to look at the others. */
static int choose_stream(struct core *c, int64_t now, int64_t *again) {
  int chosen = -1;
  for (int i = 0; i < c->stream_count; i++) {
    int k = (c->next_stream + i) % c->stream_count;
    int64_t at = stream_ready(c, c->streams[k], now);
    if (at <= now && chosen < 0) chosen = k;
    else if (at != NEVER) *again = earlier(*again, later(at, now + 1));
  }
  return chosen;
}

static void count_microthread(struct core *c, const struct stream *s, int64_t now) {
  c->busy++;
  if (!c->fabric->trace) return;
  charge_microthread(c, s->site);
  add_activity(c->fabric, BESIDE, c->number, now, now + 1, 1);
}

static void issue_chosen(struct core *c, int chosen, int64_t now) {
  struct stream *s = c->streams[chosen];
  if (!issue(c, s, now)) return;
  s->from = now + 1;
  c->next_stream = (uint8_t)((chosen + 1) % c->stream_count);
  c->engine_used = now;
  if (s->task >= 0) count_microthread(c, s, now); /* the main thread counts its own */
  c->fabric->last_activity = later(c->fabric->last_activity, now + 1);
  if (s->task >= 0 && c->pe.clock > now) c->pe.clock++; /* the cycle was taken from the main thread */
  int64_t at = stream_ready(c, s, now + 1);
  if (at != NEVER) wake_engine(c, at);
}

void engine_step(struct core *c, int64_t now) {
  if (c->state == CORE_FAILED) return;
  complete_all(c, now);
  int64_t again = NEVER;
  int chosen = c->stream_count ? choose_stream(c, now, &again) : -1;
  bool turn_of_main = c->pe.clock > now && c->engine_used == now - 1;
  if (chosen >= 0 && turn_of_main) again = now + 1;
  else if (chosen >= 0) issue_chosen(c, chosen, now);
  if (again != NEVER) wake_engine(c, again);
}
