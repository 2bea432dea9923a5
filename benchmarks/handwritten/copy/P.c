/* A copy of N floats within the memory of a PE, by a task that is activated. */
#include "pe.h"
#include "size.h" /* N */

struct memory {
  float from[N], to[N];
};
#define M (*(struct memory *)self->memory)

static const operand a = {0}, b = {1};

static void work(void) { invoke_simd(fmovs, b, a); }

static void main(void) {
  configure(a, SIZES(N), STRIDES(1));
  configure(b, SIZES(N), STRIDES(1));
  set_base_address(a, &M.from[0]);
  set_base_address(b, &M.to[0]);
  activate(work);
}

ROLE(P, .memory_bytes = sizeof(struct memory), .operands = 2, .main = main, .tasks = { LOCAL(work) })
