/* Role C_0: PE[0, 0:1]: y[k, w] += x[w + rw] * W[k, rw], k = PE_Y, w = 0:13, rw = 0:2 (paper, Examples 5.3 to 5.9).
 * x comes sparse from the north and goes on to the south; y leaves to the west, dense, then sparse element 5, then the end. */
#include "pe.h"

struct memory {
  half y_local[1][18];       /* y[k, w] at [-PE_Y + k, 2 + w] */
  half W_local[1][3];
  uint16_t x_index_0;
  uint8_t waiting_reduce;
};
#define MEMORY ((struct memory *)self->memory)
#define y_local (MEMORY->y_local)
#define W_local (MEMORY->W_local)
#define x_index_0 (MEMORY->x_index_0)

enum { x_in, y_in };
enum { y_out };
static const operand y_init = {0}, C_y = {1}, C_W = {2}, y_send = {3}, y_part = {4};

static void handle_x(uint16_t index, half data) {
  cost(.operations = 2);
  if (index > 15) return;
  set_base_address(C_y, &y_local[0][2 + index]);
  invoke_simd(fmach, C_y, C_y, C_W, data);
}
static void end_x(void) {
  block(x_in);
  activate(reduce_y);
}
static void reduce_y(void) {
  invoke_simd(fmovh, y_send, y_part);
  for (int c0 = 0; c0 < 4; c0 += 1) {
    cost(.iterations = 1, .loads = 1);
    send(y_out, load(y_local[0][2 + c0]));
  }
  send_sparse(y_out, 5, load(y_local[0][2 + 5]));
  send_end(y_out);
  if (next_invocation()) activate(begin);
}
static void begin(void) {
  invoke_simd(fmovh, y_init, (half)0);
  store(y_local[0][2], (half)(load(y_local[0][2]) + (half)0));
  unblock(x_in);
}
static void main(void) {
  array(y_local);
  array(W_local);
  configure(y_init, SIZES(1, 14), STRIDES(18, 1));
  configure(C_y, SIZES(3), STRIDES(-1));
  configure(C_W, SIZES(3), STRIDES(1));
  configure_output(y_send, y_out, 14);
  configure(y_part, SIZES(14), STRIDES(1));
  set_base_address(y_init, &y_local[0][2]);
  set_base_address(y_part, &y_local[0][2]);
  set_base_address(C_W, &W_local[0][0]);
  activate(begin);
}
ROLE(C_0,
  .memory_bytes = sizeof(struct memory), .operands = 5, .main = main,
  .inputs = { [x_in] = { SPARSE_HALF(handle_x), .end = end_x }, [y_in] = { 0 } },
  .tasks = { LOCAL(begin), BLOCKING(reduce_y) })
