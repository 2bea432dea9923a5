/* The nest of an operand in memory: joining its dimensions, and walking along it. */
#include "fabric.h"

/* Leaves out dimensions of size 1 and joins those that are contiguous. */
static inline void add_dimension(struct descriptor *d, uint32_t size, int32_t stride) {
  if (size == 1) return;
  uint32_t last = d->dims - 1u;
  if (d->dims && d->strides[last] == (int64_t)stride * size) {
    d->sizes[last] *= size;
    d->strides[last] = stride;
    return;
  }
  d->sizes[d->dims] = size;
  d->strides[d->dims++] = stride;
}

static inline void add_reach(struct descriptor *d, uint32_t size, int32_t stride) {
  int64_t reach = (int64_t)stride * (size - 1);
  if (reach < 0) d->low += (int32_t)reach;
  else d->high += (int32_t)reach;
}

void cursor_start(struct cursor *k, const struct descriptor *d) {
  *k = (struct cursor){.nest = d, .offset = d->base};
}

long cursor_stride(const struct cursor *k) {
  return k->nest->dims ? (long)k->nest->strides[k->nest->dims - 1] : 0;
}

uint32_t cursor_row_left(const struct cursor *k) {
  int last = k->nest->dims - 1;
  return last < 0 ? 1 : k->nest->sizes[last] - k->at[last];
}

/* Moves n elements on, at most to the end of the row. */
void cursor_advance(struct cursor *k, uint32_t n) {
  const struct descriptor *d = k->nest;
  int32_t bytes = (int32_t)type_bytes(d->type);
  int i = d->dims - 1;
  if (i < 0) return;
  k->offset += (int64_t)n * d->strides[i] * bytes;
  k->at[i] += n;
  for (; i > 0 && k->at[i] == d->sizes[i]; i--) {
    k->offset += ((int64_t)d->strides[i - 1] - (int64_t)d->sizes[i] * d->strides[i]) * bytes;
    k->at[i] = 0;
    k->at[i - 1]++;
  }
}
