/* What a layout may use: void layout(int PE_X, int PE_Y) says what one PE is; the simulator asks it for every PE. */
#ifndef POLYLOOM_LAYOUT_H
#define POLYLOOM_LAYOUT_H

struct role; /* ROLE(name, ...) in a file of its own; here: extern const struct role name; */

enum { NORTH = 1, SOUTH = 2, EAST = 4, WEST = 8, RAMP = 16 };

/* The program that the PE runs; without it the PE only routes. */
void program(const struct role *role);
/* What the program sees as PE (0, 0), so that its PE_X and PE_Y count from there. Without it, the layout's own. */
void origin(int x, int y);
/* Where a color comes from (one side), and the set of sides where it goes. At most one route a color and PE. */
void route(int color, int from, int to);
/* Which color fills an input queue, which one an output queue feeds. */
void bind_input(int queue, int color);
void bind_output(int queue, int color);

void layout(int x, int y);

#endif
