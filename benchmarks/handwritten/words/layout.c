#include "layout.h"
extern const struct role P;
void layout(int PE_X, int PE_Y) {
  program(&P);
  route(PE_X, RAMP, EAST);
  bind_output(0, PE_X);
  if (PE_X > 0) {
    route(0, WEST, RAMP);
    bind_input(0, 0);
  }
}
