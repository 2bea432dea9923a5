/* y = W x: x comes sparse from the north down each column, 8 elements a chunk; every PE adds its 16 partial results to
 * those from the west and hands them to the east, on two colors in turn. */
#include "pe.h"

struct memory {
  half y_local[16];
  half W_local[16][8];
};
#define MEMORY ((struct memory *)self->memory)
#define y_local (MEMORY->y_local)
#define W_local (MEMORY->W_local)

enum { x_in, y_in };
enum { y_out };
static const operand y_all = {0}, C_W = {1}, y_recv = {2}, y_send = {3};

static void handle_x(uint16_t index, half data) {
  cost(.operations = 2);
  set_base_address(C_W, &W_local[0][index]);
  invoke_simd(fmach, y_all, y_all, C_W, data);
}
static void end_x(void) {
  block(x_in);
  activate(reduce_y);
}
static void reduce_y(void) {
  if (PE_X == 0) invoke_simd(fmovh, y_send, y_all);
  else invoke_simd(faddh, y_send, y_recv, y_all);
  send_end(y_out);
  if (PE_X > 0) activate(end_y), unblock(y_in);
  else if (next_invocation()) activate(begin);
}
static void end_y(void) {}
static void end_of_y(void) {
  block(y_in);
  if (next_invocation()) activate(begin);
}
static void begin(void) {
  invoke_simd(fmovh, y_all, (half)0);
  unblock(x_in);
}
static void main(void) {
  array(y_local);
  array(W_local);
  configure(y_all, SIZES(16), STRIDES(1));
  configure(C_W, SIZES(16), STRIDES(8));
  set_base_address(y_all, &y_local[0]);
  configure_input(y_recv, y_in, 16);
  configure_output(y_send, y_out, 16);
  activate(begin);
}
ROLE(P,
  .memory_bytes = sizeof(struct memory), .operands = 4, .main = main,
  .inputs = { [x_in] = { SPARSE_HALF(handle_x), .end = end_x }, [y_in] = { .end = end_of_y } },
  .tasks = { LOCAL(begin), BLOCKING(reduce_y), LOCAL(end_y) })
