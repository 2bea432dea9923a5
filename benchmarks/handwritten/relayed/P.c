/* A sum of N floats over WIDTH PEs to the west, where every PE receives all that comes from the east, adds its own, and
 * then sends: asynchronous instructions, each ended by a task that starts what follows. */
#include "pe.h"
#include "size.h" /* WIDTH, N */

struct memory {
  float data[N], come[N];
};
#define M (*(struct memory *)self->memory)

static const operand own = {0}, come = {1}, in = {2}, out = {3};

static void done(void) {}
static void pass_on(void) { start_simd(done, fmovs, out, own); }
static void add(void) {
  invoke_simd(fadds, own, own, come);
  if (PE_X > 0) activate(pass_on);
}

static void work(void) {
  if (PE_X == WIDTH - 1) start_simd(done, fmovs, out, own);
  else start_simd(add, fmovs, come, in);
}

static void main(void) {
  configure(own, SIZES(N), STRIDES(1));
  configure(come, SIZES(N), STRIDES(1));
  set_base_address(own, &M.data[0]);
  set_base_address(come, &M.come[0]);
  configure_input(in, 0, N);
  configure_output(out, 0, N);
  activate(work);
}

ROLE(P, .memory_bytes = sizeof(struct memory), .operands = 4, .main = main,
     .tasks = { BLOCKING(work), LOCAL(add), BLOCKING(pass_on), LOCAL(done) })
