/* N words to the east, each by an instruction of its own in a loop; the second PE passes every word on, in a data task that
 * counts them. RELAY: there is a second PE. */
#include "pe.h"
#include "size.h" /* N, RELAY */

struct memory {
  int32_t word[1];
};
#define M (*(struct memory *)self->memory)

static const operand word = {0}, out = {1};

static void pass_on(int32_t data) {
  cost(.iterations = 1); /* count, compare, branch */
  invoke_simd(mov32, out, data);
}

static void work(void) {
  for (int i = 0; i < N; i++) {
    cost(.iterations = 1);
    invoke_simd(mov32, out, word);
  }
}

static void main(void) {
  configure(word, SIZES(1), STRIDES(1));
  set_base_address(word, &M.word[0]);
  configure_output(out, 0, 1);
  if (PE_X == 0) activate(work);
  else unblock(0);
}

ROLE(P, .memory_bytes = sizeof(struct memory), .operands = 2, .main = main,
     .inputs = { { DENSE_INT32(pass_on), .blocking = true } }, .tasks = { BLOCKING(work) })
