#include "layout.h"
#include "size.h" /* WIDTH, HEIGHT */
extern const struct role P;
void layout(int PE_X, int PE_Y) {
  int to = 1 + PE_X % 2, from = 1 + (PE_X + 1) % 2;
  program(&P);
  route(0 /* x */, NORTH, PE_Y + 1 < HEIGHT ? RAMP | SOUTH : RAMP);
  route(to /* y, out */, RAMP, EAST);
  if (PE_X > 0) route(from /* y, in */, WEST, RAMP);
  bind_input(0, 0);
  if (PE_X > 0) bind_input(1, from);
  bind_output(0, to);
}
