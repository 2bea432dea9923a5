/* Makes routers and PEs of a fabric of CSL programs, and starts them. */
#include <stdlib.h>
#include <string.h>

#include "csl_fabric.h"

extern const struct csl_program *const csl_programs[]; /* the table of the linked units, ended by NULL */

enum { LANDING_LENGTH = 4 }; /* wse2: of what a color without a queue fills; estimate: as the queues 2 and 3 */

static void bind_tasks(struct csl_core *c) {
  const struct csl_program *p = c->program;
  for (const struct csl_task *t = p->tasks; t && t->kind; t++) {
    if (t->kind == CSL_DATA_TASK && t->id < 32) c->data[t->id] = t;
    if (t->kind == CSL_LOCAL_TASK && t->id < 32) c->local[t->id] = t;
    if (t->kind == CSL_CONTROL_TASK && t->id < CSL_IDS) c->control[t->id] = t;
  }
  int gated = is_wse3(c) ? CSL_QUEUES : CSL_COLORS;
  for (int id = 0; id < gated; id++)
    if (!c->data[id] && !c->local[id]) c->blocked |= 1ull << id;
  for (const uint8_t *id = p->blocked; id && *id; id++) c->blocked |= 1ull << (*id - 1);
  for (const uint8_t *id = p->unblocked; id && *id; id++) c->blocked &= ~(1ull << (*id - 1));
  for (const uint8_t *id = p->activated; id && *id; id++) c->activated |= 1u << (*id - 1);
}

static void make_csl_queues(struct fabric *f, struct csl_core *c) {
  const struct machine *m = &f->machine;
  uint32_t number = c->core.number;
  memset(c->input_color, NO_COLOR, sizeof c->input_color);
  memset(c->output_color, NO_COLOR, sizeof c->output_color);
  for (const struct csl_queue *q = c->program->queues; q && q->present; q++) {
    if (q->output) {
      if (q->queue < CSL_QUEUES) c->output_color[q->queue] = q->color;
      continue;
    }
    if (q->queue >= m->input_queues) {
      fail_setup(f, node_x(f, number), node_y(f, number), "too-many-queues", "there is no input queue %d: the machine has %d", q->queue, m->input_queues);
      continue;
    }
    c->input_color[q->queue] = q->color;
    c->inputs[q->queue] = csl_ring(f, m->input_lengths[q->queue] + m->ramp_latency, END_PE, number, q->queue);
  }
  for (int q = 0; q < m->output_queues && q < CSL_QUEUES; q++) {
    struct ring *r = csl_ring(f, m->output_lengths[q] + m->ramp_latency, END_ROUTER, number, SIDE_RAMP * 32 + q);
    r->producer = number;
    r->producer_kind = END_PE;
    c->outputs[q] = c->router->in[SIDE_RAMP][q] = r;
  }
}

static void make_landings(struct fabric *f, struct csl_core *c) {
  if (is_wse3(c)) return;
  for (int color = 0; color < CSL_COLORS; color++) {
    if (csl_landing(c, color) || (!c->data[color] && (c->blocked >> color & 1))) continue;
    c->of_color[color] = csl_ring(f, LANDING_LENGTH + f->machine.ramp_latency, END_PE, c->core.number, CSL_QUEUES + color);
  }
}

static void make_fifos(struct fabric *f, struct csl_core *c) {
  int count = 0;
  for (const struct csl_fifo *x = c->program->fifos; x && x->bytes; x++) count++;
  c->fifos = arena_take(f->arena, (size_t)(count + 1) * sizeof *c->fifos);
}

static void make_memory(struct fabric *f, struct csl_core *c) {
  const struct csl_program *p = c->program;
  if (p->memory_bytes > (size_t)f->machine.memory_bytes)
    fail_setup(f, node_x(f, c->core.number), node_y(f, c->core.number), "memory", "%s needs %zu bytes, a PE has %d", p->name,
               p->memory_bytes, f->machine.memory_bytes);
  c->core.pe.memory = arena_take(f->arena, p->memory_bytes + 8);
  c->core.pe.shadow = arena_take(f->arena, p->memory_bytes / 2 + 8);
  c->core.pe.memory_bytes = p->memory_bytes;
  c->core.pe.costs = &f->machine.scalar;
  c->state = arena_take(f->arena, p->state_bytes + 8);
}

/* What events.c looks at of a core of layers. */
static void make_empty_parts(struct fabric *f, struct core *c) {
  c->inputs = arena_take(f->arena, (size_t)f->machine.input_queues * sizeof *c->inputs);
  c->outputs = arena_take(f->arena, sizeof *c->outputs);
}

static void place_program(struct fabric *f, uint32_t number, const struct csl_program *p, int x, int y) {
  struct csl_core *c = arena_take(f->arena, sizeof *c);
  struct core *core = &c->core;
  f->nodes[number].core = core;
  core->fabric = f;
  core->node = &f->nodes[number];
  core->number = number;
  core->core_due = core->engine_due = NEVER;
  core->engine_used = -2;
  core->pe.x = x;
  core->pe.y = y;
  c->program = p;
  c->router = &csl_of(f)->routers[number];
  c->last_call = &c->calls;
  make_memory(f, c);
  make_empty_parts(f, core);
  bind_tasks(c);
  make_csl_queues(f, c);
  make_landings(f, c);
  make_fifos(f, c);
}

/* What the program sets up by itself costs nothing, and may fail as a task may. */
static void initialise(struct csl_core *c) {
  struct core *core = &c->core;
  core->job = (struct job){.run = c->program->initialise, .name = "initialise"};
  core->pe.limit = NEVER;
  core->state = CORE_SLEEPS;
  coroutine_start(core);
  if (core->state != CORE_FAILED) core->state = CORE_FREE;
  core->pe.clock = core->pe.scalar_operations = 0;
}

static void start_core(struct csl_core *c) {
  if (c->program->initialise) initialise(c);
  wake_core(&c->core, 0);
}

static void start_all(struct csl_fabric *csl) {
  if (csl->started) return;
  csl->started = true;
  for (uint32_t i = 0; i < csl->fabric.node_count; i++)
    if (csl_core_at(&csl->fabric, i)) start_core(csl_core_at(&csl->fabric, i));
}
