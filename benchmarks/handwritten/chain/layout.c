/* Two colors in turn, to the west. */
#include "layout.h"
#include "size.h"
extern const struct role P;
void layout(int PE_X, int PE_Y) {
  program(&P);
  if (PE_X > 0) {
    route(PE_X % 2, RAMP, WEST);
    bind_output(0, PE_X % 2);
  }
  if (PE_X < WIDTH - 1) {
    route(1 - PE_X % 2, EAST, RAMP);
    bind_input(0, 1 - PE_X % 2);
  }
}
