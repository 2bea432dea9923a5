/* Colors 0 and 1 in turn within groups, 2 and 3 in turn between their first PEs. */
#include "layout.h"
#include "size.h"
extern const struct role P;
void layout(int PE_X, int PE_Y) {
  int group = PE_X / STEP, last = (WIDTH - 1) / STEP;
  int head = PE_X % STEP == 0, end = (PE_X + 1) % STEP == 0 || PE_X == WIDTH - 1;
  program(&P);
  if (!head) {
    route(PE_X % 2, RAMP, WEST);
    bind_output(0, PE_X % 2);
  }
  if (!end) {
    route(1 - PE_X % 2, EAST, RAMP);
    bind_input(0, 1 - PE_X % 2);
  }
  if (head && group > 0) {
    route(2 + group % 2, RAMP, WEST);
    bind_output(1, 2 + group % 2);
  }
  if (group < last) {
    route(3 - group % 2, EAST, head ? RAMP : WEST);
    if (head) bind_input(1, 3 - group % 2);
  }
}
