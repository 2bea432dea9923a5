/* Beside a part of a C program in a library: memory for its structures, and the seconds that it took. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>

enum { SLOTS = 4096 };

static void *placed[SLOTS];
static struct timespec begun, ended;

void *polyloom_place(int slot, long long bytes)
{
  void *found = slot < SLOTS ? realloc(placed[slot], bytes > 0 ? bytes : 1) : NULL;
  if (!found)
    abort();
  return placed[slot] = found;
}

void polyloom_before(void) { clock_gettime(CLOCK_MONOTONIC, &begun); }
void polyloom_after(void) { clock_gettime(CLOCK_MONOTONIC, &ended); }

double polyloom_seconds(void)
{
  return (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec);
}
