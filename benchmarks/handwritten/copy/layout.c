/* One PE, without links. */
#include "layout.h"
extern const struct role P;
void layout(int PE_X, int PE_Y) { program(&P); }
