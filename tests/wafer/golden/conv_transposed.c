// fd_0.c
/* Role fd_0 */
/* on all PEs */

#include "pe.h"

struct memory {
  half W_local[5][5];   /* W[i0, i1] -> W_local[i0, i1] */
  half dx_local[11][11];   /* dx[i0, i1] -> dx_local[i0, i1] */
  uint16_t dy_index_0;
};
#define MEMORY ((struct memory *)self->memory)
#define W_local (MEMORY->W_local)
#define dx_local (MEMORY->dx_local)
#define dy_index_0 (MEMORY->dy_index_0)

enum { dy_in };   /* input queues */
enum { dx_to_east_out };   /* output queues */

static const operand fd_dx = {0};   /* [i0, i1] -> dx_local[2index_0 + i0, 2index + i1] */
static const operand fd_W = {1};   /* [i0, i1] -> W_local[i0, i1] */
static const operand dx_to_east_own_local = {2};
static const operand dx_to_east_own_out = {3};
static const operand initialize_dx = {4};

static void begin(void);
static void send_dx_east(void);
static void finish(void);

static void handle_dy(uint16_t index, half data) {
  cost(.operations = 4, .loads = 1);
  set_base_address(fd_dx, &dx_local[2 * dy_index_0][2 * index]);
  invoke_simd(fmach, fd_dx, fd_dx, fd_W, data);
}

static void end_dy(void) {
  cost(.operations = 1, .loads = 1, .stores = 1, .branches = 1);
  if (++dy_index_0 == 4) {
    dy_index_0 = 0;
    block(dy_in);
    activate(send_dx_east);
  }
}

static void begin(void) {
  invoke_simd(fmovh, initialize_dx, (half)0.0f);
  unblock(dy_in);
}

static void send_dx_east(void) {
  invoke_simd(fmovh, dx_to_east_own_out, dx_to_east_own_local);
  activate(finish);
}

static void finish(void) {
  if (next_invocation()) {
    activate(begin);
  }
}

static void main(void) {
  array(W_local);
  array(dx_local);
  configure(fd_dx, SIZES(5, 5), STRIDES(11, 1));
  configure(fd_W, SIZES(5, 5), STRIDES(5, 1));
  configure(dx_to_east_own_local, SIZES(121), STRIDES(1));
  configure_output_pairs(dx_to_east_own_out, dx_to_east_out, 121);
  configure(initialize_dx, SIZES(121), STRIDES(1));
  set_base_address(fd_W, &W_local[0][0]);
  set_base_address(dx_to_east_own_local, &dx_local[0][0]);
  set_base_address(initialize_dx, &dx_local[0][0]);
  dy_index_0 = 0;
  activate(begin);
}

ROLE(fd_0,
  .memory_bytes = sizeof(struct memory),
  .operands = 5,
  .main = main,
  .inputs = { [dy_in] = { SPARSE_HALF(handle_dy), .end = end_dy } },
  .tasks = { LOCAL(begin), BLOCKING(send_dx_east), LOCAL(finish) })
// layout.c
#include "layout.h"

extern const struct role fd_0;

void layout(int PE_X, int PE_Y) {
  /* color 0: dy from the north */
  /* color 1: dx to the east */
  route(0, NORTH, RAMP);
  route(1, RAMP, EAST);
  program(&fd_0);
  bind_input(0, 0);   /* dy_in */
  bind_output(0, 1);   /* dx_to_east_out */
}
