/* What is left when nothing can happen any more: who waits for what, and why wavelets stand where they do. */
#include <stdio.h>
#include <string.h>

#include "csl_fabric.h"

static const char *const NAME_OF_INPUT[INPUT_SIDES] = {"NORTH", "SOUTH", "EAST", "WEST", "RAMP", "the host"};

static void report_waiting_task(struct report *r, struct csl_core *c) {
  const struct core *core = &c->core;
  const struct pe_site *s = core->waits_site;
  int x = node_x(core->fabric, core->number), y = node_y(core->fabric, core->number);
  if (core->state == CORE_WAITS_INPUT)
    line(r, "PE(%d, %d): %s in task %s waits for an element of input queue %d, color %d (%s:%d)\n", x, y, s->text, core->job.name,
         core->waits_queue, c->input_color[core->waits_queue], s->file, s->line);
  else if (core->state == CORE_WAITS_OUTPUT)
    line(r, "PE(%d, %d): %s in task %s waits for room in output queue %d (%s:%d)\n", x, y, s->text, core->job.name,
         core->waits_queue, s->file, s->line);
}

/* What a stream waits for, as text: the operand that is not ready. */
static void describe_wait(struct csl_core *c, const struct csl_stream *s, char *text, size_t size) {
  for (int k = 0; k < s->instruction->sources; k++) {
    const struct csl_place_of *p = &s->source[k];
    if (p->place == PLACE_INPUT && !p->held_count && !ring_head(c->inputs[p->queue])->full) {
      snprintf(text, size, "an element of input queue %d, color %d", p->queue, c->input_color[p->queue]);
      return;
    }
    if (p->place == PLACE_FIFO && !c->fifos[p->queue].count) {
      snprintf(text, size, "an element of FIFO %d", p->queue);
      return;
    }
  }
  if (s->to.place == PLACE_OUTPUT) snprintf(text, size, "room in output queue %d, color %d", s->to.queue, s->to.color);
  else if (s->to.place == PLACE_FIFO) snprintf(text, size, "room in FIFO %d", s->to.queue);
  else snprintf(text, size, "its turn");
}

static void report_waiting_stream(struct report *r, struct csl_core *c, const struct csl_stream *s) {
  char what[96], who[128];
  if (s->endless) return;
  describe_wait(c, s, what, sizeof what);
  if (s->main) snprintf(who, sizeof who, "task %s", c->core.job.name);
  else snprintf(who, sizeof who, "microthread %d", s->lane);
  line(r, "PE(%d, %d): %s of %s waits for %s; %u elements to come (%s:%d)\n", node_x(c->core.fabric, c->core.number),
       node_y(c->core.fabric, c->core.number), s->site->text, who, what, s->left, s->site->file, s->site->line);
}

/* Why the wavelet at the head of a router's input does not go on. */
static void describe_stop(struct fabric *f, uint32_t node, int side, int color, char *text, size_t size) {
  const struct csl_router *router = &csl_of(f)->routers[node];
  const struct csl_route *r = &router->routes[color];
  struct csl_core *c = csl_core_at(f, node);
  if (side != SIDE_HOST && !r->configured) snprintf(text, size, "the color has no route there");
  else if (side != SIDE_HOST && r->teardown) snprintf(text, size, "the color is in teardown there");
  else if (side != SIDE_HOST && !(r->rx[r->position] >> side & 1))
    snprintf(text, size, "its route takes nothing from there (switch position %d)", r->position);
  else if ((side == SIDE_HOST || r->tx[r->position] >> SIDE_RAMP & 1) && (!c || !csl_landing(c, color)))
    snprintf(text, size, "the PE binds no input queue or data task to the color");
  else snprintf(text, size, "there is no room where it goes");
}

static void report_router(struct fabric *f, struct report *r, uint32_t node) {
  const struct csl_router *router = &csl_of(f)->routers[node];
  for (int side = 0; side < INPUT_SIDES; side++)
    for (uint32_t set = router->waiting[side]; set; set &= set - 1) {
      struct ring *ring = router->in[side][__builtin_ctz(set)];
      if (!ring_head(ring)->full) continue;
      char why[96];
      int color = ring_head(ring)->tag & TAG_COLOR;
      describe_stop(f, node, side, color, why, sizeof why);
      line(r, "PE(%d, %d): %d wavelets of color %d from %s wait in the router: %s\n", node_x(f, node), node_y(f, node),
           wavelets_in(ring), color, NAME_OF_INPUT[side], why);
    }
}

static void report_landing(struct fabric *f, struct report *r, struct csl_core *c, const struct ring *ring, int id, int queue) {
  int count = ring ? wavelets_in(ring) : 0;
  if (!count) return;
  bool reads = queue >= 0 && c->queue_reads >> queue & 1;
  const char *why = reads ? "an operation reads it" : c->blocked >> id & 1 ? "its id is blocked" : "no task takes them";
  int color = ring->slots[ring->head].tag & TAG_COLOR;
  if (queue < 0) line(r, "PE(%d, %d): %d wavelets of color %d wait: %s\n", node_x(f, c->core.number), node_y(f, c->core.number), count, color, why);
  else line(r, "PE(%d, %d): %d wavelets of color %d in input queue %d: %s\n", node_x(f, c->core.number), node_y(f, c->core.number), count,
            color, queue, why);
}

static void report_commands(struct fabric *f, struct report *r, struct csl_core *c) {
  if (c->command_runs)
    line(r, "PE(%d, %d): the command %s has not called unblock_cmd_stream\n", node_x(f, c->core.number), node_y(f, c->core.number),
         c->call->function->name);
  if (c->core.state == CORE_FREE)
    for (uint32_t set = c->activated & (uint32_t)c->blocked; set; set &= set - 1) {
      int id = __builtin_ctz(set);
      line(r, "PE(%d, %d): task %s is activated, but blocked\n", node_x(f, c->core.number), node_y(f, c->core.number),
           c->local[id] ? c->local[id]->name : "?");
    }
}

static void report_core(struct fabric *f, struct report *r, struct csl_core *c) {
  report_waiting_task(r, c);
  for (int i = 0; i < c->stream_count; i++) report_waiting_stream(r, c, c->streams[i]);
  report_commands(f, r, c);
}

enum { LINES_OF_WAITERS = 10 }; /* the rest is for wavelets that stand still: they tell why */

static void report_waiters(struct fabric *f, struct report *r) {
  int left_out = 0;
  for (uint32_t i = 0; i < f->node_count; i++) {
    struct csl_core *c = csl_core_at(f, i);
    if (!c) continue;
    if (r->lines < LINES_OF_WAITERS) report_core(f, r, c);
    else left_out += c->stream_count || c->command_runs;
  }
  if (left_out) line(r, "and operations or commands of %d more PEs\n", left_out);
}

static void report_core_left(struct fabric *f, struct report *r, struct csl_core *c) {
  for (int q = 0; q < CSL_QUEUES; q++)
    if (c->inputs[q]) report_landing(f, r, c, c->inputs[q], id_of_queue(c, q), q);
  for (int k = 0; k < CSL_COLORS; k++) report_landing(f, r, c, c->of_color[k], k, -1);
}

static void report_goals(struct csl_fabric *f, struct report *r) {
  for (int i = f->goal_next; i < f->goal_count; i++) {
    const struct csl_goal *g = &f->goals[i];
    if (g->kind == GOAL_COLLECTED && f->sinks[g->node_or_index].count < g->count) {
      const struct csl_sink *s = &f->sinks[g->node_or_index];
      line(r, "the host waits for %lld words of color %d from PE(%d, %d): %lld have come\n", (long long)g->count, s->color,
           node_x(&f->fabric, s->node), node_y(&f->fabric, s->node), (long long)s->count);
    }
    if (g->kind == GOAL_INJECTED) {
      const struct csl_source *s = &f->sources[g->node_or_index];
      if (s->next < s->count)
        line(r, "the host has %lld words left for color %d of PE(%d, %d)\n", (long long)(s->count - s->next), s->color,
             node_x(&f->fabric, s->node), node_y(&f->fabric, s->node));
    }
  }
}

static int report_all(struct csl_fabric *csl, struct report *r) {
  struct fabric *f = &csl->fabric;
  report_waiters(f, r);
  report_goals(csl, r);
  int waiting = r->lines;
  for (uint32_t i = 0; i < f->node_count; i++) {
    if (csl_core_at(f, i)) report_core_left(f, r, csl_core_at(f, i));
    report_router(f, r, i);
  }
  return waiting;
}

/* Adds to a failure that was noted without them who waits for what. */
void csl_report_details(struct csl_fabric *csl) {
  struct failure *e = &csl->fabric.failure;
  struct report r = {e->details, sizeof e->details, 0, 0};
  report_all(csl, &r);
  close_report(&r);
}

/* A deadlock, or wavelets left at the end. At the end an operation may still wait: for what nobody sends any more. */
void csl_report(struct csl_fabric *csl, bool at_end) {
  struct fabric *f = &csl->fabric;
  struct failure *e = &f->failure;
  if (e->present) return;
  struct report r = {e->details, sizeof e->details, 0, 0};
  int waiting = report_all(csl, &r);
  if (at_end && r.lines == waiting) {
    e->details[0] = 0;
    return;
  }
  close_report(&r);
  e->present = 1;
  e->cycle = f->now;
  e->x = e->y = -1;
  copy_text(e->kind, sizeof e->kind, at_end ? "data-left" : "deadlock");
  copy_text(e->message, sizeof e->message, at_end ? "the program has ended, but wavelets are left"
                                                  : "nothing can happen any more, but the program has not ended");
}
