/* C += A B on one PE: for every element of B a multiply-add of a column of A to a column of C. All arrays lie row by
 * row, so both operands have strides. */
#include "pe.h"
#include "size.h" /* ROWS, INNER, COLUMNS */

struct memory {
  float A[ROWS][INNER];
  float B[INNER][COLUMNS];
  float C[ROWS][COLUMNS];
};
#define M (*(struct memory *)self->memory)

static const operand a = {0}, c = {1};

static void work(void) {
  for (int k = 0; k < INNER; k++) {
    cost(.iterations = 1, .operations = 2); /* the address of A[0][k] */
    set_base_address(a, &M.A[0][k]);
    for (int j = 0; j < COLUMNS; j++) {
      cost(.iterations = 1, .operations = 5, .loads = 1); /* the addresses of C[0][j] and B[k][j], and B[k][j] */
      set_base_address(c, &M.C[0][j]);
      invoke_simd(fmacs, c, c, a, load(M.B[k][j]));
    }
  }
}

static void main(void) {
  configure(a, SIZES(ROWS), STRIDES(INNER));
  configure(c, SIZES(ROWS), STRIDES(COLUMNS));
  activate(work);
}

ROLE(P, .memory_bytes = sizeof(struct memory), .operands = 2, .main = main, .tasks = { LOCAL(work) })
