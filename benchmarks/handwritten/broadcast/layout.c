#include "layout.h"
#include "size.h" /* WIDTH */
extern const struct role P;
void layout(int PE_X, int PE_Y) {
  program(&P);
  if (PE_X == 0) {
    route(0, RAMP, EAST);
    bind_output(0, 0);
    return;
  }
  route(0, WEST, PE_X < WIDTH - 1 ? RAMP | EAST : RAMP);
  bind_input(0, 0);
}
