/* C *= B, N floats, by one instruction. Where the two arrays lie in the banks depends on GAP, in floats. */
#include "pe.h"
#include "size.h" /* N, GAP */

struct memory {
  float B[N];
  float gap[GAP];
  float C[N];
};
#define M (*(struct memory *)self->memory)

static const operand b = {0}, c = {1};

static void work(void) { invoke_simd(fmuls, c, c, b); }

static void main(void) {
  configure(b, SIZES(N), STRIDES(1));
  configure(c, SIZES(N), STRIDES(1));
  set_base_address(b, &M.B[0]);
  set_base_address(c, &M.C[0]);
  activate(work);
}

ROLE(P, .memory_bytes = sizeof(struct memory), .operands = 2, .main = main, .tasks = { LOCAL(work) })
