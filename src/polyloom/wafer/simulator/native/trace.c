/* The record of what happened when; Python writes it as a file for a timeline viewer. */
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

struct trace *trace_create(void) { return calloc(1, sizeof(struct trace)); }

void trace_destroy(struct trace *t) {
  if (!t) return;
  profile_free(&t->profile);
  free(t->events);
  free(t->names);
  free(t);
}

static uint32_t name_number(struct trace *t, const char *name) {
  for (uint32_t i = 0; i < t->name_count; i++)
    if (t->names[i] == name || !strcmp(t->names[i], name)) return i;
  if (t->name_count == t->name_capacity) {
    t->name_capacity = t->name_capacity ? 2 * t->name_capacity : 64;
    if (!(t->names = realloc(t->names, t->name_capacity * sizeof *t->names))) abort();
  }
  t->names[t->name_count] = name;
  return t->name_count++;
}

static void add(struct trace *t, struct trace_event e) {
  if (t->count == t->capacity) {
    t->capacity = t->capacity ? 2 * t->capacity : 1024;
    if (!(t->events = realloc(t->events, t->capacity * sizeof *t->events))) abort();
  }
  t->events[t->count++] = e;
}

static void add_kind(struct fabric *f, enum trace_kind kind, uint32_t node, int lane, int64_t start, int64_t end) {
  if (kind == TRACE_TASK) add_activity(f, COMPUTES, node, start, end, 1);
  if (kind == TRACE_WAIT) {
    add_activity(f, COMPUTES, node, start, end, -1);
    add_activity(f, WAITS, node, start, end, 1);
  }
  if (kind == TRACE_LINK && lane != SIDE_RAMP) add_activity(f, SENDS, node, start, end, 1);
}

void trace_add(struct fabric *f, enum trace_kind kind, uint32_t node, int lane, const char *name, int64_t start,
               int64_t end) {
  trace_add_at(f, kind, node, lane, NULL, name, start, end);
}

/* `site`: the statement that it is of, NULL where there is none. */
void trace_add_at(struct fabric *f, enum trace_kind kind, uint32_t node, int lane, const struct pe_site *site,
                  const char *name, int64_t start, int64_t end) {
  struct trace *t = f->trace;
  add_kind(f, kind, node, lane, start, end);
  if (t->of_chosen && !f->nodes[node].traced) return;
  add(t, (struct trace_event){start, end - start, node, (uint16_t)kind, (uint16_t)lane, name_number(t, name),
                              site ? (uint32_t)site->line : 0});
}

/* What the thread of another part has recorded. */
void trace_append(struct fabric *f, struct trace *from) {
  struct trace *to = f->trace;
  profile_append(f, &from->profile);
  for (size_t i = 0; i < from->count; i++) {
    struct trace_event e = from->events[i];
    e.name = name_number(to, from->names[e.name]);
    add(to, e);
  }
}
