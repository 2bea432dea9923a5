/* A sum of N floats over WIDTH PEs to the west in two phases: chains within groups of STEP PEs, then a chain over the
 * first PEs of the groups. The last of these passes on without storing. */
#include "pe.h"
#include "size.h" /* WIDTH, N, STEP */

struct memory {
  float data[N];
};
#define M (*(struct memory *)self->memory)

enum { group_in, head_in };
enum { group_out, head_out };
static const operand own = {0}, from_group = {1}, to_group = {2}, from_head = {3}, to_head = {4};

static bool is_head(void) { return PE_X % STEP == 0; }
static bool ends_group(void) { return (PE_X + 1) % STEP == 0 || PE_X == WIDTH - 1; }
static bool is_last_head(void) { return is_head() && PE_X + STEP >= WIDTH; }

static void work(void) {
  if (ends_group() && is_head()) invoke_simd(fmovs, to_head, own);
  else if (ends_group()) invoke_simd(fmovs, to_group, own);
  else if (is_last_head() && PE_X > 0) invoke_simd(fadds, to_head, own, from_group);
  else if (!is_head()) invoke_simd(fadds, to_group, own, from_group);
  else {
    invoke_simd(fadds, own, own, from_group);
    if (PE_X > 0) invoke_simd(fadds, to_head, own, from_head);
    else if (STEP < WIDTH) invoke_simd(fadds, own, own, from_head);
  }
}

static void main(void) {
  configure(own, SIZES(N), STRIDES(1));
  set_base_address(own, &M.data[0]);
  configure_input(from_group, group_in, N);
  configure_output(to_group, group_out, N);
  configure_input(from_head, head_in, N);
  configure_output(to_head, head_out, N);
  activate(work);
}

ROLE(P, .memory_bytes = sizeof(struct memory), .operands = 5, .main = main, .tasks = { BLOCKING(work) })
