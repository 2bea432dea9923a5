/* Memory that lives as long as its fabric: zeroed, taken from large blocks, given back all at once.
 *
 * The kernel zeroes it and lends pages on first use; large pages, where there are some, spare the translation cache of
 * the processor, which limits the speed of large fabrics. */
#include <stdlib.h>
#include <sys/mman.h>

#include "fabric.h"

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

static const size_t FIRST_BLOCK = 1 << 18, LARGEST_BLOCK = 1 << 26, PAGE = 1 << 21;

struct block {
  struct block *next;
  size_t bytes;
};

struct arena {
  struct block *blocks;
  unsigned char *at;
  size_t left, next_bytes;
};

struct arena *arena_create(void) {
  struct arena *a = calloc(1, sizeof *a);
  if (!a) abort();
  a->next_bytes = FIRST_BLOCK;
  return a;
}

void arena_destroy(struct arena *a) {
  if (!a) return;
  for (struct block *b = a->blocks; b;) {
    struct block *next = b->next;
    munmap(b, b->bytes);
    b = next;
  }
  free(a);
}

static size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

static void add_block(struct arena *a, size_t least) {
  size_t bytes = rounded_up(least + 64, least + 64 > a->next_bytes ? PAGE : a->next_bytes);
  struct block *b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (b == MAP_FAILED) abort();
#ifdef MADV_HUGEPAGE
  if (bytes >= PAGE) madvise(b, bytes, MADV_HUGEPAGE);
#endif
  b->next = a->blocks;
  b->bytes = bytes;
  a->blocks = b;
  a->at = (unsigned char *)b + 64;
  a->left = bytes - 64;
  if (a->next_bytes < LARGEST_BLOCK) a->next_bytes *= 4;
}

/* Whatever fills a line of the cache begins with one. */
void *arena_take(struct arena *a, size_t bytes) {
  size_t unit = bytes < 64 ? 16 : 64;
  bytes = rounded_up(bytes, 16);
  size_t gap = (size_t)(-(uintptr_t)a->at % unit);
  if (bytes + gap > a->left) {
    add_block(a, bytes);
    gap = 0;
  }
  a->at += gap;
  a->left -= gap;
  void *taken = a->at;
  a->at += bytes;
  a->left -= bytes;
  return taken;
}
