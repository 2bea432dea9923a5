/* Runs a part of a C program on arrays from a file, each between pages that nothing may touch.
 *
 *   driver INPUT OUTPUT REPORT start|end SECONDS nearest|up|down|zero      (three files)
 *
 * INPUT: the number of slots, then for each: bytes, elements, the offset of its data, 16 extents (all int64).
 * OUTPUT gets the data as the part leaves it, at the same offsets. REPORT gets one line where something is wrong:
 *   outside SLOT DISTANCE        an access so many bytes before (< 0) or behind an array
 *   written SLOT before|behind   an array's surroundings were changed
 *   index LINE:COLUMN VALUE TYPE    a subscript outside of a dimension
 * `start` puts each array's start at the end of a forbidden page, `end` its end before the next one.
 * The last word says where the part's operations on floats round to.
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { EXTENTS = 16, CANARY = 0xA5, FAULT = 3, MOST_FENCES = 4096 };

struct polyloom_slot { void *memory; long long elements, extents[EXTENTS]; };
struct entry { int64_t bytes, elements, offset, extents[EXTENTS]; };
struct fence { int slot; char *low, *high, *start, *end; size_t guard; };

extern void polyloom_enter(struct polyloom_slot *slots);

static struct polyloom_slot *slots;
static struct fence fences[MOST_FENCES];
static int fence_count, report, at_end, rounding = FE_TONEAREST;
static size_t page;

static void say(const char *text)
{
  if (write(report, text, strlen(text)) < 0) { }
  _exit(FAULT);
}

static size_t rounded(size_t bytes) { return (bytes + page - 1) / page * page; }

static char *reserved(size_t bytes)
{
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;
#endif
  void *found = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
  return found == MAP_FAILED ? NULL : found;
}

/* Returns memory between two forbidden ranges; what is left of its pages holds a pattern. */
void *polyloom_place(int slot, long long bytes)
{
  size_t inner = rounded(bytes > 0 ? bytes : 1), guard = (size_t)256 << 20;
  char *base = reserved(inner + 2 * guard);
  if (!base) {
    guard = page;
    base = reserved(inner + 2 * guard);
  }
  if (!base || fence_count == MOST_FENCES || mprotect(base + guard, inner, PROT_READ | PROT_WRITE))
    say("memory\n");
  char *low = base + guard, *start = at_end ? low + inner - (bytes > 0 ? bytes : 0) : low;
  memset(low, CANARY, start - low);
  memset(start + bytes, CANARY, low + inner - (start + bytes));
  fences[fence_count++] = (struct fence){slot, low, low + inner, start, start + bytes, guard};
  return start;
}

void polyloom_before(void) { }
void polyloom_after(void) { }

static void outside(int number, siginfo_t *info, void *context)
{
  (void)context;
  char *at = info->si_addr, line[80];
  for (int k = 0; number != SIGFPE && k < fence_count; k++) {
    struct fence *f = &fences[k];
    if (at < f->low - f->guard || at >= f->high + f->guard)
      continue;
    long long distance = at < f->start ? at - f->start : at - f->end;
    snprintf(line, sizeof line, "outside %d %lld\n", f->slot, distance);
    say(line);
  }
  signal(number, SIG_DFL);
  raise(number);
}

static int changed(const char *from, const char *to)
{
  for (; from < to; from++)
    if (*(const unsigned char *)from != CANARY)
      return 1;
  return 0;
}

static void check_fences(void)
{
  char line[80];
  for (int k = 0; k < fence_count; k++) {
    struct fence *f = &fences[k];
    int before = changed(f->low, f->start);
    if (before || changed(f->end, f->high)) {
      snprintf(line, sizeof line, "written %d %s\n", f->slot, before ? "before" : "behind");
      say(line);
    }
  }
}

/* What gcc and clang call where a subscript lies outside of a dimension that they know. */
struct place { const char *file; uint32_t line, column; };
struct type { uint16_t kind, info; char name[]; };
struct bounds { struct place place; struct type *array, *index; };

static void wrong_index(struct bounds *data, uintptr_t index)
{
  char line[4096];
  int bits = 1 << (data->index->info >> 1), is_signed = data->index->info & 1;
  int64_t value = bits > (int)(8 * sizeof index) ? *(int64_t *)index : (int64_t)index;
  if (bits < 64 && is_signed)
    value = (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
  snprintf(line, sizeof line, "index %u:%u %lld %s\n", data->place.line, data->place.column, (long long)value,
           data->array->name);
  say(line);
}

void __ubsan_handle_out_of_bounds(struct bounds *data, uintptr_t index) { wrong_index(data, index); }
void __ubsan_handle_out_of_bounds_abort(struct bounds *data, uintptr_t index) { wrong_index(data, index); }

static void *run(void *unused)
{
  (void)unused;
  static char memory[1 << 16];
  stack_t other = {.ss_sp = memory, .ss_size = sizeof memory};
  sigaltstack(&other, NULL);
  fesetround(rounding);
  polyloom_enter(slots);
  return NULL;
}

/* Returns a direction by its name, -1 where the processor does not have it. */
static int direction(const char *name)
{
#ifdef FE_UPWARD
  if (!strcmp(name, "up"))
    return FE_UPWARD;
#endif
#ifdef FE_DOWNWARD
  if (!strcmp(name, "down"))
    return FE_DOWNWARD;
#endif
#ifdef FE_TOWARDZERO
  if (!strcmp(name, "zero"))
    return FE_TOWARDZERO;
#endif
  return strcmp(name, "nearest") ? -1 : FE_TONEAREST;
}

static void put(int file, const char *data, size_t bytes, off_t offset)
{
  while (bytes > 0) {
    ssize_t done = pwrite(file, data, bytes, offset);
    if (done <= 0)
      say("disk\n");
    data += done;
    bytes -= done;
    offset += done;
  }
}

int main(int count, char **arguments)
{
  if (count != 7 || (rounding = direction(arguments[6])) < 0)
    return 2;
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  int input = open(arguments[1], O_RDONLY), output = open(arguments[2], O_RDWR | O_CREAT, 0600);
  report = open(arguments[3], O_RDWR | O_CREAT, 0600);
  if (input < 0 || output < 0 || report < 0)
    return 2;
  at_end = !strcmp(arguments[4], "end");
  rlim_t seconds = atoi(arguments[5]);
  setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds + 2});
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  page = sysconf(_SC_PAGESIZE);

  struct stat status;
  fstat(input, &status);
  char *data = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, input, 0);
  if (data == MAP_FAILED)
    say("memory\n");
  int64_t number = *(int64_t *)data, total = 0;
  struct entry *entries = (struct entry *)(data + sizeof(int64_t));
  slots = calloc(number + 1, sizeof *slots);
  for (int k = 0; k < number; k++) {
    struct entry *e = &entries[k];
    slots[k].memory = polyloom_place(k, e->bytes);
    slots[k].elements = e->elements;
    for (int d = 0; d < EXTENTS; d++)
      slots[k].extents[d] = e->extents[d];
    memcpy(slots[k].memory, data + e->offset, e->bytes);
    total += e->bytes;
  }

  int caught[] = {SIGSEGV, SIGBUS};
  struct sigaction action = {.sa_sigaction = outside, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  for (int k = 0; k < 2; k++)
    sigaction(caught[k], &action, NULL);
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, rounded(2 * total + ((size_t)64 << 20)));
  if (pthread_create(&thread, &attributes, run, NULL) || pthread_join(thread, NULL))
    say("memory\n");
  check_fences();
  for (int k = 0; k < number; k++)
    put(output, slots[k].memory, entries[k].bytes, entries[k].offset);
  return 0;
}
