// C_0.c
/* Role C_0 */
/* on all PEs */

#include "pe.h"

struct memory {
  half W_local[1][3];   /* W[i0, i1] -> W_local[-PE_Y + i0, i1] */
  half y_local[1][18];   /* y[i0, i1] -> y_local[-PE_Y + i0, 2 + i1] */
};
#define MEMORY ((struct memory *)self->memory)
#define W_local (MEMORY->W_local)
#define y_local (MEMORY->y_local)

enum { x_in };   /* input queues */
enum { y_to_east_out };   /* output queues */

static const operand C_y = {0};   /* [i0] -> y_local[0, 2 + index - i0] */
static const operand C_W = {1};   /* [i0] -> W_local[0, i0] */
static const operand y_to_east_own_local = {2};
static const operand y_to_east_own_out = {3};
static const operand initialize_y = {4};

static void begin(void);
static void send_y_east(void);
static void finish(void);

static void handle_x(uint16_t index, half data) {
  cost(.operations = 2);
  set_base_address(C_y, &y_local[0][index + 2]);
  invoke_simd(fmach, C_y, C_y, C_W, data);
}

static void end_x(void) {
  block(x_in);
  activate(send_y_east);
}

static void begin(void) {
  invoke_simd(fmovh, initialize_y, (half)0.0f);
  unblock(x_in);
}

static void send_y_east(void) {
  invoke_simd(fmovh, y_to_east_own_out, y_to_east_own_local);
  activate(finish);
}

static void finish(void) {
  if (next_invocation()) {
    activate(begin);
  }
}

static void main(void) {
  array(W_local);
  array(y_local);
  configure(C_y, SIZES(3), STRIDES(-1));
  configure(C_W, SIZES(3), STRIDES(1));
  configure(y_to_east_own_local, SIZES(14), STRIDES(1));
  configure_output_pairs(y_to_east_own_out, y_to_east_out, 14);
  configure(initialize_y, SIZES(14), STRIDES(1));
  set_base_address(C_W, &W_local[0][0]);
  set_base_address(y_to_east_own_local, &y_local[0][2]);
  set_base_address(initialize_y, &y_local[0][2]);
  activate(begin);
}

ROLE(C_0,
  .memory_bytes = sizeof(struct memory),
  .operands = 5,
  .main = main,
  .inputs = { [x_in] = { SPARSE_HALF(handle_x), .end = end_x } },
  .tasks = { LOCAL(begin), BLOCKING(send_y_east), LOCAL(finish) })
// layout.c
#include "layout.h"

extern const struct role C_0;

void layout(int PE_X, int PE_Y) {
  /* color 0: x from the north */
  /* color 1: y to the east */
  if (PE_Y == 0)
    route(0, NORTH, RAMP | SOUTH);
  if (PE_Y == 1)
    route(0, NORTH, RAMP);
  route(1, RAMP, EAST);
  program(&C_0);
  bind_input(0, 0);   /* x_in */
  bind_output(0, 1);   /* y_to_east_out */
}
