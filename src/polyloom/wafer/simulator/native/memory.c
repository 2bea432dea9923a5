/* Memory that lives as long as its fabric: zeroed, taken from large blocks, given back all at once. */
#include <stdlib.h>

#include "fabric.h"

enum { BLOCK_BYTES = 1 << 20 };

struct block { struct block *next; };
struct arena {
  struct block *blocks;
  unsigned char *at;
  size_t left;
};

struct arena *arena_create(void) { return calloc(1, sizeof(struct arena)); }

void arena_destroy(struct arena *a) {
  if (!a) return;
  for (struct block *b = a->blocks; b;) {
    struct block *next = b->next;
    free(b);
    b = next;
  }
  free(a);
}

static void add_block(struct arena *a, size_t bytes) {
  size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
  struct block *b = calloc(1, size + 64);
  if (!b) abort();
  b->next = a->blocks;
  a->blocks = b;
  a->at = (unsigned char *)b + 16;
  a->left = size;
}

void *arena_take(struct arena *a, size_t bytes) {
  bytes = (bytes + 15) & ~(size_t)15;
  if (bytes > a->left) add_block(a, bytes);
  void *taken = a->at;
  a->at += bytes;
  a->left -= bytes;
  return taken;
}
