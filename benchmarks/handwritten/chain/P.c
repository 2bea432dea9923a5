/* A sum of N floats over WIDTH PEs in a chain to the west, element by element: what comes from the east plus one's own
 * goes on. MICROTHREADS: by asynchronous instructions, which end with a task. */
#include "pe.h"
#include "size.h" /* WIDTH, N, MICROTHREADS */

struct memory {
  float data[N];
};
#define M (*(struct memory *)self->memory)

static const operand own = {0}, in = {1}, out = {2};

#if MICROTHREADS
#define RUN(...) start_simd(done, __VA_ARGS__)
#else
#define RUN(...) invoke_simd(__VA_ARGS__)
#endif

static void done(void) {}

static void work(void) {
  if (PE_X == 0) RUN(fadds, own, own, in);
  else if (PE_X == WIDTH - 1) RUN(fmovs, out, own);
  else RUN(fadds, out, own, in);
}

static void main(void) {
  configure(own, SIZES(N), STRIDES(1));
  set_base_address(own, &M.data[0]);
  configure_input(in, 0, N);
  configure_output(out, 0, N);
  activate(work);
}

ROLE(P, .memory_bytes = sizeof(struct memory), .operands = 3, .main = main,
     .tasks = { BLOCKING(work), LOCAL(done) })
