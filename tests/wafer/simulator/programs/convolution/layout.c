#include "layout.h"
extern const struct role C_0;
void layout(int PE_X, int PE_Y) {
  if (PE_X == 0 && PE_Y <= 1) {
    program(&C_0);
    route(0 /* x */, NORTH, PE_Y == 0 ? RAMP | SOUTH : RAMP);
    route(1 /* y */, RAMP, WEST);
    bind_input(0, 0);
    bind_output(0, 1);
  }
}
