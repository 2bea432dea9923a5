/* N words from the first PE of a row to all others, which take each by a data task. */
#include "pe.h"
#include "size.h" /* N */

struct memory {
  int32_t words[N];
};
#define M (*(struct memory *)self->memory)

static const operand words = {0}, out = {1};

static void take(int32_t data) { (void)data; }
static void work(void) { invoke_simd(mov32, out, words); }

static void main(void) {
  configure(words, SIZES(N), STRIDES(1));
  set_base_address(words, &M.words[0]);
  configure_output(out, 0, N);
  if (PE_X == 0) activate(work);
  else unblock(0);
}

ROLE(P, .memory_bytes = sizeof(struct memory), .operands = 2, .main = main, .inputs = { { DENSE_INT32(take) } },
     .tasks = { BLOCKING(work) })
