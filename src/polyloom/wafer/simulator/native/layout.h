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
/* The same with a switch: the color comes from ``first``; a wavelet that turns it (turn_switches in pe.h) lets it come
   from ``then``, and the next one from ``first`` again. */
void route_in_turn(int color, int first, int then, int to);
/* Of each ``period`` wavelets of a color that go to the PE, it gets ``keep``, after the first ``skip``. With ``pairs`` the
   numbers are of elements, of which a wavelet holds two. Behind the color's route. */
void filter(int color, int skip, int keep, int period);
void filter_pairs(int color, int skip, int keep, int period);
/* Which color fills an input queue, which one an output queue feeds. */
void bind_input(int queue, int color);
void bind_output(int queue, int color);

void layout(int x, int y);

#endif
