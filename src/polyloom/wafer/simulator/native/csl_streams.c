/* DSD operations: those in memory at once, those with an operand of the fabric or a FIFO one element a cycle, as
 * wavelets come and as there is room.
 *
 * The main thread waits for its own; microthreads run beside it. All share one engine: it issues for one of them a
 * cycle, those of the highest priority first, in rotation. While the main thread computes, a microthread gets at most
 * every second cycle, and the main thread ends one cycle later for each. A packed wavelet holds two elements of 16 bits: both
 * are executed in one cycle. */
#include <string.h>

#include "csl_fabric.h"

/* ---- One element ---- */

static bool fail_stream(struct csl_core *c, const struct csl_stream *s, const char *kind, const char *message) {
  fail_node(c->core.fabric, c->core.number, kind, s->site, "%s: %s", s->site->text, message);
  c->core.state = CORE_FAILED;
  return false;
}

static bool known(const struct csl_core *c, int64_t offset, int bytes) {
  const uint8_t *shadow = c->core.pe.shadow + offset / 2;
  return shadow[0] & shadow[bytes / 2 - 1];
}

static uint32_t fifo_capacity(const struct csl_core *c, int fifo) {
  const struct csl_fifo *f = &c->program->fifos[fifo];
  return f->bytes / f->element_bytes;
}

static int64_t fifo_slot(const struct csl_core *c, int fifo, uint32_t number) {
  const struct csl_fifo *f = &c->program->fifos[fifo];
  return (int64_t)f->address + (int64_t)(number % fifo_capacity(c, fifo)) * f->element_bytes;
}

static void activate_id(struct csl_core *c, uint8_t id, int64_t now) {
  if (!id) return;
  c->activated |= 1u << (id - 1);
  csl_wake(c, now);
}

static uint32_t half_of(struct csl_place_of *p, uint32_t payload) {
  if (p->pack != 2) return payload;
  p->held = payload >> 16;
  p->held_count = 1;
  return payload & 0xffff;
}

static uint32_t take_input(struct csl_core *c, struct csl_place_of *p, int64_t at) {
  if (p->held_count) {
    p->held_count = 0;
    return p->held;
  }
  struct ring *r = c->inputs[p->queue];
  uint32_t payload = ring_head(r)->payload;
  csl_pop(c->core.fabric, r, at);
  return half_of(p, payload);
}

static uint32_t take_fifo(struct csl_core *c, struct csl_place_of *p, int64_t at, bool *is_known) {
  struct csl_fifo_state *f = &c->fifos[p->queue];
  int64_t slot = fifo_slot(c, p->queue, f->head);
  uint32_t value = 0;
  memcpy(&value, c->core.pe.memory + slot, p->bytes);
  *is_known &= known(c, slot, p->bytes);
  f->head++;
  f->count--;
  activate_id(c, c->program->fifos[p->queue].activate_pop, at + 1);
  return value;
}

static void put_fifo(struct csl_core *c, struct csl_place_of *p, uint32_t value, bool is_known, int64_t at) {
  struct csl_fifo_state *f = &c->fifos[p->queue];
  int64_t slot = fifo_slot(c, p->queue, f->head + f->count);
  memcpy(c->core.pe.memory + slot, &value, p->bytes);
  memset(c->core.pe.shadow + slot / 2, is_known, p->bytes / 2);
  f->count++;
  activate_id(c, c->program->fifos[p->queue].activate_push, at + 1);
}

static void put_output(struct csl_core *c, struct csl_stream *s, uint32_t value, int64_t at) {
  struct csl_place_of *p = &s->to;
  struct fabric *f = c->core.fabric;
  if (p->pack == 2 && !p->held_count && s->left) { /* s->left: without this element */
    p->held = value & 0xffff;
    p->held_count = 1;
    return;
  }
  uint32_t payload = p->held_count ? p->held | value << 16 : value;
  p->held_count = 0;
  f->statistics.wavelets++;
  csl_push(f, c->outputs[p->queue], at + 1 + f->machine.ramp_latency, payload,
           (uint8_t)(p->color | (p->control ? TAG_CONTROL : 0)));
}

static bool put(struct csl_core *c, struct csl_stream *s, uint32_t value, bool is_known, int64_t at) {
  struct csl_place_of *p = &s->to;
  if (p->place == PLACE_OUTPUT) {
    if (!is_known) return fail_stream(c, s, "poison", "an uninitialised value leaves the PE");
    put_output(c, s, value, at);
    return true;
  }
  if (p->place == PLACE_FIFO) {
    put_fifo(c, p, value, is_known, at);
    return true;
  }
  memcpy(c->core.pe.memory + p->cursor.offset, &value, p->bytes);
  memset(c->core.pe.shadow + p->cursor.offset / 2, is_known, p->bytes / 2);
  cursor_advance(&p->cursor, 1);
  return true;
}

/* A control wavelet where an element is expected; returns whether the operation goes on. */
static bool take_control(struct csl_core *c, struct csl_stream *s, struct csl_place_of *p, int64_t at) {
  if (s->on_control == CSL_CONTROL_DEFAULT)
    return fail_stream(c, s, "control-wavelet", "a control wavelet came where elements were expected, and there is no .on_control");
  csl_pop(c->core.fabric, c->inputs[p->queue], at);
  if (s->on_control == CSL_CONTROL_ACTIVATE) activate_id(c, s->on_control_id, at + 1);
  if (s->on_control == CSL_CONTROL_UNBLOCK && s->on_control_id) c->blocked &= ~(1ull << (s->on_control_id - 1));
  s->left = 0;
  s->endless = false;
  return true;
}

static bool control_is_next(struct csl_core *c, const struct csl_stream *s) {
  if (s->input < 0 || s->source[s->input].held_count) return false;
  const struct slot *head = ring_head(c->inputs[s->source[s->input].queue]);
  return head->full && head->tag & TAG_CONTROL;
}

/* Executes one element at cycle `at`: what it needs has come, and there is room for its result. */
static bool issue_element(struct csl_core *c, struct csl_stream *s, int64_t at) {
  const struct instruction *ins = s->instruction;
  unsigned char *pointers[MOST_SOURCES];
  static const long still[MOST_SOURCES];
  bool is_known = true;
  uint32_t result = 0;
  if (control_is_next(c, s)) return take_control(c, s, &s->source[s->input], at);
  for (int k = 0; k < ins->sources; k++) {
    struct csl_place_of *p = &s->source[k];
    pointers[k] = (unsigned char *)&p->scalar;
    if (p->place == PLACE_INPUT) p->scalar = take_input(c, p, at);
    if (p->place == PLACE_FIFO) p->scalar = take_fifo(c, p, at, &is_known);
    if (p->place != PLACE_MEMORY) continue;
    pointers[k] = c->core.pe.memory + p->cursor.offset;
    is_known &= known(c, p->cursor.offset, p->bytes);
  }
  csl_carry = s->carry;
  ins->run((unsigned char *)&result, 0, pointers, still, 1);
  s->carry = csl_carry;
  for (int k = 0; k < ins->sources; k++)
    if (s->source[k].place == PLACE_MEMORY) cursor_advance(&s->source[k].cursor, 1);
  if (!s->endless) s->left--;
  return put(c, s, result, is_known, at);
}

/* Whether the next element needs nothing new of the fabric: the other half of a packed wavelet. */
static bool second_half(const struct csl_stream *s) {
  if (!s->left) return false;
  if (s->to.place == PLACE_OUTPUT && !s->to.held_count) return false;
  if (s->input >= 0 && !s->source[s->input].held_count) return false;
  for (int k = 0; k < s->instruction->sources; k++)
    if (s->source[k].place == PLACE_FIFO) return false;
  return s->to.place != PLACE_FIFO && (s->input >= 0 || s->to.held_count);
}

static bool issue(struct csl_core *c, struct csl_stream *s, int64_t at) {
  if (!issue_element(c, s, at)) return false;
  return second_half(s) ? issue_element(c, s, at) : true;
}

/* ---- When ---- */

static int64_t input_ready(struct csl_core *c, const struct csl_stream *s, const struct csl_place_of *p, int64_t at) {
  if (p->held_count) return at;
  const struct slot *head = ring_head(c->inputs[p->queue]);
  if (!head->full) return NEVER;
  int64_t wake = !s->main && head->time > s->from ? c->core.fabric->machine.microthread_wake : 0;
  return later(at, head->time + wake);
}

static int64_t output_ready(struct csl_core *c, const struct csl_stream *s, int64_t at) {
  struct ring *r = c->outputs[s->to.queue];
  if (ring_tail(r)->full) {
    r->producer_waits = 1;
    return NEVER;
  }
  return later(at, ring_tail(r)->time + 1);
}

/* When the stream can execute its next element (or end): now, later, or NEVER: then something wakes the engine. */
static int64_t stream_ready_at(struct csl_core *c, struct csl_stream *s, int64_t now) {
  int64_t at = later(s->from, now);
  if (!s->left) return at;
  for (int k = 0; k < s->instruction->sources && at != NEVER; k++) {
    if (s->source[k].place == PLACE_INPUT) at = input_ready(c, s, &s->source[k], at);
    else if (s->source[k].place == PLACE_FIFO && !c->fifos[s->source[k].queue].count) at = NEVER;
  }
  if (at == NEVER || control_is_next(c, s)) return at;
  if (s->to.place == PLACE_OUTPUT) return output_ready(c, s, at);
  if (s->to.place == PLACE_FIFO && c->fifos[s->to.queue].count >= fifo_capacity(c, s->to.queue)) return NEVER;
  return at;
}

/* ---- The engine ---- */

static void complete_stream(struct csl_core *c, int index, int64_t now) {
  struct fabric *f = c->core.fabric;
  struct csl_stream *s = c->streams[index];
  memmove(&c->streams[index], &c->streams[index + 1], (size_t)(--c->stream_count - index) * sizeof *c->streams);
  if (c->next_stream > index) c->next_stream--;
  if (s->input >= 0) c->queue_reads &= ~(1u << s->source[s->input].queue);
  s->done = true;
  if (f->trace) trace_add(f, s->main ? TRACE_SIMD : TRACE_MICROTHREAD, c->core.number, s->main ? 0 : s->lane, s->instruction->name, s->began, now);
  if (s->main) {
    wake_core(&c->core, now);
    return;
  }
  activate_id(c, s->activate, now);
  if (s->unblock) c->blocked &= ~(1ull << (s->unblock - 1));
  csl_wake(c, now);
  s->next_free = csl_of(f)->free_streams;
  csl_of(f)->free_streams = s;
}

static void complete_streams(struct csl_core *c, int64_t now) {
  for (int i = c->stream_count - 1; i >= 0; i--)
    if (!c->streams[i]->left && c->streams[i]->from <= now) complete_stream(c, i, now);
}

/* The stream whose turn it is among the ready ones of the highest priority, -1 if none is; *again: when to look at others. */
static int choose(struct csl_core *c, int64_t now, int64_t *again) {
  int chosen = -1;
  for (int i = 0; i < c->stream_count; i++) {
    int k = (c->next_stream + i) % c->stream_count;
    struct csl_stream *s = c->streams[k];
    int64_t at = stream_ready_at(c, s, now);
    if (at == NEVER) continue;
    if (at <= now && (chosen < 0 || s->priority > c->streams[chosen]->priority)) {
      if (chosen >= 0) *again = now + 1;
      chosen = k;
    } else {
      *again = earlier(*again, later(at, now + 1));
    }
  }
  return chosen;
}

static void issue_chosen_stream(struct csl_core *c, int chosen, int64_t now) {
  struct csl_stream *s = c->streams[chosen];
  if (!issue(c, s, now)) return;
  s->from = now + 1;
  c->next_stream = (chosen + 1) % c->stream_count;
  c->core.engine_used = now;
  c->core.busy++;
  if (c->core.fabric->trace) charge_microthread(&c->core, s->site);
  c->core.fabric->last_activity = later(c->core.fabric->last_activity, now + 1);
  if (!s->main && c->core.pe.clock > now) c->core.pe.clock++; /* the cycle was taken from the main thread */
  wake_engine(&c->core, now + 1); /* it, or another that waits for a FIFO */
}

void engine_step(struct core *core, int64_t now) {
  struct csl_core *c = (struct csl_core *)core;
  if (core->state == CORE_FAILED) return;
  complete_streams(c, now);
  int64_t again = NEVER;
  int chosen = c->stream_count ? choose(c, now, &again) : -1;
  bool turn_of_main = core->pe.clock > now && core->engine_used == now - 1;
  if (chosen >= 0 && turn_of_main && !c->streams[chosen]->main) again = now + 1;
  else if (chosen >= 0) issue_chosen_stream(c, chosen, now);
  if (again != NEVER) wake_engine(core, again);
}

/* ---- Starting ---- */

static struct csl_stream *take_stream(struct csl_core *c) {
  struct csl_fabric *f = csl_of(c->core.fabric);
  struct csl_stream *s = f->free_streams;
  if (s) f->free_streams = s->next_free;
  else s = arena_take(c->core.fabric->arena, sizeof *s);
  *s = (struct csl_stream){.input = -1};
  return s;
}

static void give_stream_back(struct csl_core *c, struct csl_stream *s) {
  s->next_free = csl_of(c->core.fabric)->free_streams;
  csl_of(c->core.fabric)->free_streams = s;
}

static int lane_of(struct csl_core *c, const struct csl_stream *s, const csl_options *o) {
  if (o->ut) return o->ut - 1;
  if (s->to.place == PLACE_OUTPUT) return s->to.queue;
  if (s->input >= 0) return s->source[s->input].queue;
  uint32_t used = 0;
  for (int i = 0; i < c->stream_count; i++)
    if (!c->streams[i]->main) used |= 1u << c->streams[i]->lane;
  return __builtin_ctz(~used);
}

static void check_queues(struct csl_core *c, const struct csl_stream *s, const struct pe_site *site) {
  for (int i = 0; i < c->stream_count; i++) {
    const struct csl_stream *o = c->streams[i];
    if (s->to.place == PLACE_OUTPUT && o->to.place == PLACE_OUTPUT && o->to.queue == s->to.queue)
      fail_task(&c->core, "queue-in-use", site, "%s: a microthread feeds output queue %d already (%s, line %d)", site->text,
                s->to.queue, o->site->text, o->site->line);
    if (s->input >= 0 && o->input >= 0 && o->source[o->input].queue == s->source[s->input].queue)
      fail_task(&c->core, "queue-in-use", site, "%s: a microthread reads input queue %d already (%s, line %d)", site->text,
                s->source[s->input].queue, o->site->text, o->site->line);
  }
  if (s->input < 0) return;
  int queue = s->source[s->input].queue, id = id_of_queue(c, queue);
  if (id < 32 && c->data[id] && !(c->blocked >> id & 1))
    fail_task(&c->core, "queue-in-use", site, "%s: input queue %d has the data task %s, which is not blocked: both would take its wavelets",
              site->text, queue, c->data[id]->name);
}

static void enlist_stream(struct csl_core *c, struct csl_stream *s) {
  if (c->stream_count == CSL_STREAMS) fail_task(&c->core, "too-many-microthreads", s->site, "%s: too many operations at once", s->site->text);
  c->streams[c->stream_count++] = s;
  if (s->input >= 0) c->queue_reads |= 1u << s->source[s->input].queue;
  wake_engine(&c->core, later(s->from, c->core.fabric->now + 1));
}

static void start_microthread(struct csl_core *c, struct csl_stream *s, const csl_options *o, const struct pe_site *site) {
  int lane = lane_of(c, s, o);
  if (lane >= CSL_QUEUES)
    fail_task(&c->core, "too-many-microthreads", site, "%s: there is no microthread %d: the machine has %d", site->text, lane,
              CSL_QUEUES);
  for (int i = 0; i < c->stream_count; i++)
    if (!c->streams[i]->main && c->streams[i]->lane == lane)
      fail_task(&c->core, "microthread-in-use", site, "%s: microthread %d is at work already (%s, line %d)", site->text, lane,
                c->streams[i]->site->text, c->streams[i]->site->line);
  s->lane = (uint8_t)lane;
  s->activate = o->activate;
  s->unblock = o->unblock;
  s->began = c->core.pe.clock;
  c->core.pe.clock += c->core.fabric->machine.simd_launch;
  s->from = c->core.pe.clock;
  enlist_stream(c, s);
}

static void run_in_main(struct csl_core *c, struct csl_stream *s) {
  s->main = true;
  s->began = c->core.pe.clock;
  c->core.pe.clock += c->core.fabric->machine.simd_launch;
  int64_t began = s->from = c->core.pe.clock;
  uint32_t elements = s->left;
  enlist_stream(c, s);
  c->waits_stream = s;
  while (!s->done) csl_wait(c, CORE_WAITS_STREAM, 0, s->site);
  c->waits_stream = NULL;
  int64_t idle = s->from - began - elements;
  c->core.waited += idle > 0 ? idle : 0;
  c->core.busy -= elements; /* the engine has counted them; so will the task */
  c->core.pe.clock = later(c->core.pe.clock, s->from);
  give_stream_back(c, s);
}

/* ---- Operations ---- */

static void run_in_memory(struct csl_core *c, struct csl_stream *s, int width) {
  struct fabric *f = c->core.fabric;
  const struct instruction *ins = s->instruction;
  struct operand_run to = {.cursor = s->to.cursor}, from[MOST_SOURCES];
  for (int k = 0; k < ins->sources; k++)
    from[k] = (struct operand_run){.cursor = s->source[k].cursor, .scalar = s->source[k].place == PLACE_SCALAR,
                                   .value = s->source[k].scalar};
  int64_t began = c->core.pe.clock;
  csl_carry = 0;
  c->core.pe.clock += f->machine.simd_launch + run_nest(&c->core, ins, width, s->left, &to, from);
  if (f->trace) trace_add(f, TRACE_SIMD, c->core.number, 0, ins->name, began, c->core.pe.clock);
  if (c->core.pe.clock > c->core.pe.limit) pe_fail_endless();
  give_stream_back(c, s);
}

/* The length of the operation: that of the first source that has one, else of the destination. Source: comments of public
 * examples. An operand in memory with fewer elements is an error; with more, the rest is left. */
static uint32_t common_length(struct csl_core *c, const struct csl_place_of *sources, const uint32_t *of_sources, int count,
                              const struct csl_place_of *to, uint32_t of_to, const struct pe_site *site) {
  uint32_t length = UINT32_MAX;
  for (int k = 0; k < count && length == UINT32_MAX; k++) length = of_sources[k];
  if (length == UINT32_MAX) return of_to;
  for (int k = 0; k <= count; k++) {
    uint32_t n = k < count ? of_sources[k] : of_to;
    if (n < length && (k < count ? &sources[k] : to)->place == PLACE_MEMORY)
      fail_task(&c->core, "operand", site, "%s: one operand has %u elements, another %u", site->text, n, length);
  }
  return length;
}

/* What was given with a register holds where the operation itself says nothing. */
static csl_options with_registers(struct csl_core *c, const csl_options *given, const csl_operand *to,
                                  const csl_operand *sources, int count, const struct pe_site *site) {
  csl_options o = *given;
  for (int k = -1; k < count; k++) {
    const csl_operand *p = k < 0 ? to : &sources[k];
    if (p->kind != CSL_OF_DSR) continue;
    const csl_options *r = &loaded(c, p->file, p->number, site)->options;
    if (o.async) {
      if (!o.activate && !o.unblock) o.activate = r->activate, o.unblock = r->unblock;
      if (!o.ut) o.ut = r->ut;
      if (!o.priority) o.priority = r->priority;
    }
    if (!o.on_control) o.on_control = r->on_control, o.on_control_id = r->on_control_id;
  }
  return o;
}

static void set_on_control(struct csl_stream *s, const csl_options *o, const csl_operand *sources, int count) {
  s->on_control = o->on_control;
  s->on_control_id = o->on_control_id;
  for (int k = 0; k < count && !s->on_control; k++)
    if (sources[k].kind == CSL_OF_DSD && sources[k].dsd.kind == CSL_FABIN) {
      s->on_control = sources[k].dsd.on_control;
      s->on_control_id = sources[k].dsd.on_control_id;
    }
}

/* (pointer, scalar, vector): the scalar is where the reduction into the destination begins. */
static void begin_reduction(struct csl_core *c, struct csl_stream *s, const csl_operand *to, const csl_operand *sources) {
  if (to->kind != CSL_OF_ADDRESS || s->instruction->sources != 2 || sources[0].kind != CSL_OF_SCALAR ||
      sources[1].kind == CSL_OF_SCALAR || s->source[0].bytes != s->to.bytes)
    return;
  memcpy(c->core.pe.memory + s->to.cursor.offset, &s->source[0].scalar, s->to.bytes);
  memset(c->core.pe.shadow + s->to.cursor.offset / 2, 1, s->to.bytes / 2u);
  s->source[0] = s->to;
  s->source[0].cursor.nest = &s->source[0].nest;
}

static bool set_operands(struct csl_core *c, struct csl_stream *s, const csl_operand *to, const csl_operand *sources,
                         const csl_options *o, const struct pe_site *site) {
  const struct instruction *ins = s->instruction;
  uint32_t lengths[MOST_SOURCES], of_to = set_place(c, &s->to, to, (int)type_bytes(ins->to_type), true, o, ins, site);
  bool outside = s->to.place >= PLACE_INPUT;
  for (int k = 0; k < ins->sources; k++) {
    lengths[k] = set_place(c, &s->source[k], &sources[k], (int)type_bytes(ins->from_type[k]), false, o, ins, site);
    outside |= s->source[k].place >= PLACE_INPUT;
    if (s->source[k].place != PLACE_INPUT) continue;
    if (s->input >= 0) fail_task(&c->core, "operand", site, "%s: two sources come from the fabric", site->text);
    s->input = (int8_t)k;
  }
  uint32_t length = common_length(c, s->source, lengths, ins->sources, &s->to, of_to, site);
  check_reach(c, &s->to, length, site);
  for (int k = 0; k < ins->sources; k++) check_reach(c, &s->source[k], length, site);
  s->endless = length == UINT32_MAX && outside;
  s->left = length == UINT32_MAX && !outside ? 1 : length;
  return outside;
}

static void keep_addresses(struct csl_stream *s) {
  keep_address(&s->to);
  for (int k = 0; k < s->instruction->sources; k++) keep_address(&s->source[k]);
}

void csl_operate(enum csl_operation name, const csl_options *given, csl_operand to, const csl_operand *sources, int count,
                 const struct pe_site *site) {
  struct csl_core *c = this_csl();
  struct fabric *f = c->core.fabric;
  const struct instruction *ins = &csl_table[name];
  if (count != ins->sources)
    fail_task(&c->core, "operand", site, "%s has %d sources, not %d", ins->name, ins->sources, count);
  csl_options o = with_registers(c, given, &to, sources, count, site);
  struct csl_stream *s = take_stream(c);
  s->instruction = ins;
  s->site = site;
  s->priority = o.priority ? o.priority : CSL_PRIORITY_LOW;
  bool outside = set_operands(c, s, &to, sources, &o, site);
  begin_reduction(c, s, &to, sources);
  set_on_control(s, &o, sources, count);
  f->statistics.simd_operations += s->endless ? 0 : s->left;
  f->statistics.simd_instructions++;
  keep_addresses(s);
  if (!outside) {
    if (o.async) fail_task(&c->core, "operand", site, "%s: an asynchronous operation needs an operand of the fabric or a FIFO", ins->name);
    run_in_memory(c, s, f->machine.widths[name]);
    return;
  }
  csl_sleep_until_clock(c);
  check_queues(c, s, site);
  if (o.async) start_microthread(c, s, &o, site);
  else run_in_main(c, s);
}

/* ---- @map ---- */

static uint32_t next_of(struct csl_core *c, struct csl_stream *s, struct csl_place_of *p, const struct pe_site *site) {
  (void)s;
  struct fabric *f = c->core.fabric;
  uint32_t value = 0;
  bool is_known = true;
  if (p->place == PLACE_SCALAR) return p->scalar;
  if (p->place == PLACE_FIFO) {
    if (!c->fifos[p->queue].count) fail_task(&c->core, "operand", site, "@map of an empty FIFO");
    return take_fifo(c, p, c->core.pe.clock, &is_known);
  }
  if (p->place == PLACE_INPUT) {
    csl_sleep_until_clock(c);
    struct ring *r = c->inputs[p->queue];
    while (!p->held_count && !ring_head(r)->full) csl_wait(c, CORE_WAITS_INPUT, p->queue, site);
    if (!p->held_count) {
      if (ring_head(r)->tag & TAG_CONTROL) fail_task(&c->core, "control-wavelet", site, "@map: a control wavelet came where elements were expected");
      c->core.waited += later(ring_head(r)->time - c->core.pe.clock, 0);
      c->core.pe.clock = later(c->core.pe.clock, ring_head(r)->time) + f->machine.scalar.operation;
    }
    return take_input(c, p, c->core.pe.clock);
  }
  if (!known(c, p->cursor.offset, p->bytes)) pe_fail_poison(site);
  memcpy(&value, c->core.pe.memory + p->cursor.offset, p->bytes);
  cursor_advance(&p->cursor, 1);
  c->core.pe.clock += f->machine.scalar.load;
  return value;
}

static void put_mapped(struct csl_core *c, struct csl_stream *s, uint32_t value, const struct pe_site *site) {
  struct fabric *f = c->core.fabric;
  if (s->to.place == PLACE_OUTPUT) {
    csl_sleep_until_clock(c);
    struct ring *r = c->outputs[s->to.queue];
    while (ring_tail(r)->full) {
      r->producer_waits = 1;
      csl_wait(c, CORE_WAITS_OUTPUT, s->to.queue, site);
    }
    c->core.pe.clock = later(c->core.pe.clock, ring_tail(r)->time + 1) + f->machine.scalar.operation;
  }
  put(c, s, value, true, c->core.pe.clock);
  if (s->to.place != PLACE_OUTPUT) c->core.pe.clock += f->machine.scalar.store;
}

void csl_map(csl_step *step, void *captured, const csl_operand *sources, const uint8_t *bytes, int count, csl_operand to,
             int bytes_out, const struct pe_site *site) {
  struct csl_core *c = this_csl();
  static const csl_options plain;
  struct csl_stream s = {.instruction = &csl_table[CSL_mov32], .site = site, .input = -1};
  struct csl_place_of from[8];
  uint32_t in[8], lengths[8], of_to = UINT32_MAX;
  if (count > 8) fail_task(&c->core, "operand", site, "@map of more than 8 operands");
  if (bytes_out) of_to = set_place(c, &s.to, &to, bytes_out, true, &plain, NULL, site);
  for (int k = 0; k < count; k++) lengths[k] = set_place(c, &from[k], &sources[k], bytes[k], false, &plain, NULL, site);
  uint32_t length = common_length(c, from, lengths, count, &s.to, of_to, site);
  check_reach(c, &s.to, length, site);
  for (int k = 0; k < count; k++) check_reach(c, &from[k], length, site);
  if (length == UINT32_MAX) fail_task(&c->core, "operand", site, "@map needs a DSD that says how many elements");
  c->core.pe.clock += c->core.fabric->machine.simd_launch;
  for (s.left = length; s.left;) {
    uint32_t out = 0;
    for (int k = 0; k < count; k++) in[k] = next_of(c, &s, &from[k], site);
    step(captured, in, &out);
    s.left--;
    if (bytes_out) put_mapped(c, &s, out, site);
    pe_cost((struct pe_work){.iterations = 1});
  }
  if (bytes_out) keep_address(&s.to);
  for (int k = 0; k < count; k++) keep_address(&from[k]);
}
