/* Tasks run on small stacks of their own, so that one that waits for the fabric can be left and taken up again.
 *
 * A stack is lent to a task from its start to its end; only tasks that wait keep theirs. Below each stack stands a
 * canary, in the top of its neighbour, where it costs no page. */
#include <stdlib.h>
#include <sys/mman.h>

#include "fabric.h"

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

enum { STACK_BYTES = 32 * 1024, STACKS_IN_BLOCK = 64, RESERVED_TOP = 64, COLORS_OF_TOPS = 32, USUAL_STACK = 1024 };
static const uint64_t CANARY = 0xca4a51e5ca4a51e5u;

#if defined(__x86_64__)

/* Saves the callee's registers on the stack that is left, takes them from the one that is entered. */
void switch_stack(void **left, void *entered) __asm__("polyloom_switch_stack") __attribute__((visibility("hidden")));
__asm__(
    ".text\n"
    ".p2align 4\n"
    "polyloom_switch_stack:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n");

typedef void *context;
#define SWITCH(left, entered) switch_stack(&(left), entered)

/* A stack whose first entry begins `body`, which never returns. */
static void prepare(context *fresh, unsigned char *low, unsigned char *top, void (*body)(void)) {
  (void)low;
  void **at = (void **)top;
  *--at = NULL; /* where a return address would be: keeps the alignment of a call */
  *--at = (void *)body;
  at -= 6;
  *fresh = at;
}

#elif defined(__aarch64__)

void switch_stack(void **left, void *entered) __asm__("polyloom_switch_stack") __attribute__((visibility("hidden")));
__asm__(
    ".text\n"
    ".p2align 4\n"
    "polyloom_switch_stack:\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n"
    "  ret\n");

typedef void *context;
#define SWITCH(left, entered) switch_stack(&(left), entered)

static void prepare(context *fresh, unsigned char *low, unsigned char *top, void (*body)(void)) {
  (void)low;
  void **at = (void **)(top - 160);
  at[11] = (void *)body; /* x30, the return address */
  *fresh = at;
}

#else

#include <ucontext.h>

typedef ucontext_t context;
#define SWITCH(left, entered) swapcontext(&(left), &(entered))

static void prepare(context *fresh, unsigned char *low, unsigned char *top, void (*body)(void)) {
  getcontext(fresh);
  fresh->uc_stack.ss_sp = low;
  fresh->uc_stack.ss_size = (size_t)(top - low);
  fresh->uc_link = NULL;
  makecontext(fresh, body, 0);
}

#endif

struct coroutine {
  context at;
  uint64_t *canary;
  bool running; /* its job has not ended */
  struct coroutine *next_free;
};

struct stack_block {
  unsigned char *bytes;
  struct coroutine coroutines[STACKS_IN_BLOCK];
  struct stack_block *next;
};

struct coroutines {
  context scheduler;
  struct coroutine *free;
  struct stack_block *blocks;
};

static const size_t BLOCK_BYTES_OF_STACKS = (size_t)(STACKS_IN_BLOCK + 1) * STACK_BYTES;

struct coroutines *coroutines_create(void) { return calloc(1, sizeof(struct coroutines)); }

void coroutines_destroy(struct coroutines *all) {
  if (!all) return;
  for (struct stack_block *b = all->blocks; b;) {
    struct stack_block *next = b->next;
    munmap(b->bytes, BLOCK_BYTES_OF_STACKS);
    free(b);
    b = next;
  }
  free(all);
}

static void run_job(struct core *c) {
  const struct job *job = &c->job;
  uint32_t data = job->payload, index = job->payload >> 16;
  switch (job->input ? job->input->form : PE_NO_DATA_TASK) {
    case PE_NO_DATA_TASK: job->run(); return;
    case PE_SPARSE_HALF: job->input->run.sparse_half((uint16_t)index, pe_half(data)); return;
    case PE_SPARSE_INT16: job->input->run.sparse_int16((uint16_t)index, pe_int16(data)); return;
    case PE_DENSE_HALF: job->input->run.dense_half(pe_half(data)); return;
    case PE_DENSE_FLOAT: job->input->run.dense_float(pe_float(data)); return;
    case PE_DENSE_INT16: job->input->run.dense_int16(pe_int16(data)); return;
    case PE_DENSE_INT32: job->input->run.dense_int32(pe_int32(data)); return;
  }
}

/* What every stack executes: the job of the core that entered it, again and again. */
static void body(void) {
  for (;;) {
    struct core *c = this_core();
    run_job(c);
    c = this_core();
    c->coroutine->running = false;
    SWITCH(c->coroutine->at, c->fabric->coroutines->scheduler);
  }
}

static void add_stacks(struct coroutines *all) {
  struct stack_block *b = calloc(1, sizeof *b);
  if (!b) abort();
  b->bytes = mmap(NULL, BLOCK_BYTES_OF_STACKS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (b->bytes == MAP_FAILED) abort();
#ifdef MADV_NOHUGEPAGE
  madvise(b->bytes, BLOCK_BYTES_OF_STACKS, MADV_NOHUGEPAGE);
#endif
  b->next = all->blocks;
  all->blocks = b;
  for (int i = STACKS_IN_BLOCK - 1; i >= 0; i--) {
    struct coroutine *k = &b->coroutines[i];
    unsigned char *low = b->bytes + (size_t)(i + 1) * STACK_BYTES;
    k->canary = (uint64_t *)(low - 8);
    size_t stagger = (size_t)(i % COLORS_OF_TOPS) * 64; /* or all tops would compete for the same cache lines */
    prepare(&k->at, low, low + STACK_BYTES - RESERVED_TOP - stagger, body);
    k->next_free = all->free;
    all->free = k;
  }
}

static void check_canary(struct core *c) {
  if (*c->coroutine->canary != CANARY) abort(); /* memory is destroyed: no message can be trusted */
}

void coroutine_resume(struct core *c) {
  struct coroutines *all = c->fabric->coroutines;
  struct coroutine *k = c->coroutine;
  self = &c->pe;
  SWITCH(all->scheduler, k->at);
  check_canary(c);
  if (k->running) return;
  k->next_free = all->free;
  all->free = k;
  c->coroutine = NULL;
}

void coroutine_start(struct core *c) {
  struct coroutines *all = c->fabric->coroutines;
  if (!all->free) add_stacks(all);
  struct coroutine *k = c->coroutine = all->free;
  all->free = k->next_free;
  *k->canary = CANARY;
  k->running = true;
  coroutine_resume(c);
}

/* What will be touched when the task is taken up again; where it has been left is known on some processors only. */
void prefetch_stack(const struct coroutine *k) {
#if defined(__x86_64__) || defined(__aarch64__)
  for (int at = 0; at < USUAL_STACK; at += 64) __builtin_prefetch((const char *)k->at + at, 1);
#endif
  __builtin_prefetch(k->canary, 1);
}

void coroutine_yield(struct core *c) { SWITCH(c->coroutine->at, c->fabric->coroutines->scheduler); }

/* Leaves a task for good; its stack is not used again. */
_Noreturn void coroutine_abandon(struct core *c) {
  for (;;) coroutine_yield(c);
}
