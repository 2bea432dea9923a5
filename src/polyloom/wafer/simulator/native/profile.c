/* What a report shows of a whole run: the cycles of each line of the emitted C, and what PEs do as time goes on.
 *
 * Lines are known in programs that are built with PE_LINES: each statement says where it stands, and the cycles until the
 * next one are its own. Time is divided into frames, the rectangle into square cells; where a run outlasts the frames,
 * they are made twice as long. */
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

enum { MOST_FRAMES = 192, MOST_CELLS = 4096 };

/* ---- Lines ---- */

static uint32_t place_of(const struct profile *p, const struct role *role, int32_t line, const char *task) {
  uint64_t h = (uint64_t)(uintptr_t)role * 31 + (uint64_t)line * 0x9e3779b97f4a7c15u + (uint64_t)(uintptr_t)task;
  uint32_t at = (uint32_t)(h ^ h >> 29) & (p->place_count - 1);
  for (; p->places[at]; at = (at + 1) & (p->place_count - 1)) {
    const struct line_use *l = &p->lines[p->places[at] - 1];
    if (l->role == role && l->line == line && l->task == task) break;
  }
  return at;
}

static void more_places(struct profile *p) {
  free(p->places);
  p->place_count = p->place_count ? 2 * p->place_count : 256;
  p->places = calloc(p->place_count, sizeof *p->places);
  p->lines = realloc(p->lines, p->place_count / 2 * sizeof *p->lines);
  if (!p->places || !p->lines) abort();
  for (uint32_t i = 0; i < p->line_count; i++) {
    const struct line_use *l = &p->lines[i];
    p->places[place_of(p, l->role, l->line, l->task)] = i + 1;
  }
}

/* The number of a line, new or known; line 0: what happens in a task before its first statement. */
static uint32_t line_number(struct profile *p, const struct role *role, int32_t line, const char *task) {
  if (2 * (p->line_count + 1) > p->place_count) more_places(p);
  uint32_t at = place_of(p, role, line, task);
  if (!p->places[at]) {
    p->lines[p->line_count] = (struct line_use){.role = role, .task = task, .line = line};
    p->places[at] = ++p->line_count;
  }
  return p->places[at] - 1;
}

/* The cycles since the last call are of the line where the task was. */
void charge_line(struct core *c) {
  struct line_use *l = &c->fabric->trace->profile.lines[c->at_line];
  int64_t waited = c->waited - c->charged_waits;
  l->worked += c->pe.clock - c->charged_until - waited;
  l->waited += waited;
  c->charged_until = c->pe.clock;
  c->charged_waits = c->waited;
}

void enter_line(struct core *c, int32_t line, const char *file) {
  struct profile *p = &c->fabric->trace->profile;
  uint32_t number = line_number(p, c->role, line, line ? file : c->job.name);
  if (number != c->at_line || !line) p->lines[number].times++;
  c->at_line = number;
}

void pe_at(const char *file, int line) {
  struct core *c = this_core();
  if (!c->fabric->trace) return;
  charge_line(c);
  enter_line(c, line, file);
}

/* A cycle in which a microthread that was started there worked. */
void charge_microthread(struct core *c, const struct pe_site *site) {
  struct profile *p = &c->fabric->trace->profile;
  uint32_t number = line_number(p, c->role, site->line, c->role ? NULL : site->file);
  p->lines[number].beside++;
}

/* ---- Time and area ---- */

static void divide(struct profile *p, const struct fabric *f) {
  while (((f->width - 1) / (1 << p->side) + 1) * ((f->height - 1) / (1 << p->side) + 1) > MOST_CELLS) p->side++;
  p->columns = (f->width - 1) / (1 << p->side) + 1;
  p->rows = (f->height - 1) / (1 << p->side) + 1;
  p->cycles = calloc((size_t)MOST_FRAMES * ACTIVITIES * (size_t)(p->columns * p->rows), sizeof *p->cycles);
  if (!p->cycles) abort();
}

static void lengthen(struct profile *p) {
  size_t frame = (size_t)ACTIVITIES * (size_t)(p->columns * p->rows);
  for (size_t k = 0; k < MOST_FRAMES / 2; k++)
    for (size_t i = 0; i < frame; i++) p->cycles[k * frame + i] = p->cycles[2 * k * frame + i] + p->cycles[(2 * k + 1) * frame + i];
  memset(p->cycles + MOST_FRAMES / 2 * frame, 0, MOST_FRAMES / 2 * frame * sizeof *p->cycles);
  p->length++;
}

/* Adds `sign` for each cycle of a stretch of time. */
void add_activity(struct fabric *f, enum activity kind, uint32_t node, int64_t start, int64_t end, int32_t sign) {
  struct profile *p = &f->trace->profile;
  if (!p->cycles) divide(p, f);
  while (end > (int64_t)MOST_FRAMES << p->length) lengthen(p);
  int32_t cells = p->columns * p->rows, cell = (node_y(f, node) >> p->side) * p->columns + (node_x(f, node) >> p->side);
  while (start < end) {
    int64_t frame = start >> p->length, next = earlier(end, (frame + 1) << p->length);
    p->cycles[(frame * ACTIVITIES + kind) * cells + cell] += (int32_t)(next - start) * sign;
    start = next;
  }
}

/* ---- Parts ---- */

void profile_free(struct profile *p) {
  free(p->lines);
  free(p->places);
  free(p->cycles);
}

/* Adds what the thread of another part has counted. */
void profile_append(struct fabric *f, struct profile *from) {
  struct profile *to = &f->trace->profile;
  for (uint32_t i = 0; i < from->line_count; i++) {
    const struct line_use *l = &from->lines[i];
    uint32_t number = line_number(to, l->role, l->line, l->task);
    struct line_use *mine = &to->lines[number];
    mine->times += l->times;
    mine->worked += l->worked;
    mine->waited += l->waited;
    mine->beside += l->beside;
  }
  if (!from->cycles) return;
  if (!to->cycles) divide(to, f);
  while (to->length < from->length) lengthen(to);
  while (from->length < to->length) lengthen(from);
  size_t count = (size_t)MOST_FRAMES * ACTIVITIES * (size_t)(to->columns * to->rows);
  for (size_t i = 0; i < count; i++) to->cycles[i] += from->cycles[i];
}
