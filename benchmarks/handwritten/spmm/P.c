/* C += A B on one PE, A sparse in one of four formats with 32-bit indices, rows of B and C padded to PADDED floats: for
 * every element of A a multiply-add of a row of B to a row of C.
 *
 * How the work is counted: 2 operations for the address of an array's element, 1 load for the element; a 32-bit
 * counter or sum is 2 operations, one of a loop 2 more than a 16-bit one; an address has 16 bits, so the product in it
 * is one multiplication, with 2 operations for the element's size and the array's address. */
#include "pe.h"
#include "size.h" /* FORMAT, ROWS, COLUMNS, ELEMENTS, PADDED, GAP */

enum { COO, CSR, CSC, ELLPACK };

struct memory {
  float value[ELEMENTS];
  int32_t index[ELEMENTS];
#if FORMAT == 0
  int32_t other_index[ELEMENTS];
#elif FORMAT != 3
  int32_t start[ROWS + 1];
#endif
  float B[COLUMNS][PADDED];
  float gap[GAP];
  float C[ROWS][PADDED + 1];
};
#define M (*(struct memory *)self->memory)

static const operand b = {0}, c = {1};

/* What every element costs: two products, two addresses set, the instruction. */
static void multiply(int32_t row, int32_t column, float a) {
  cost(.multiplications = 2, .operations = 4);
  set_base_address(b, &M.B[column][0]);
  set_base_address(c, (&M.C[0][0] + (row * PADDED + 1)));
  invoke_simd(fmacs, c, c, b, a);
}

#if FORMAT == 0
static void work(void) {
  for (int i = 0; i < ELEMENTS; i++) {
    cost(.iterations = 1, .operations = 6, .loads = 3);
    multiply(load(M.index[i]), load(M.other_index[i]), load(M.value[i]));
  }
}
#elif FORMAT == 3
static void work(void) {
  for (int row = 0; row < ROWS; row++) {
    cost(.iterations = 1, .operations = 2, .multiplications = 1);
    for (int k = 0; k < ELEMENTS / ROWS; k++) {
      int i = row * (ELEMENTS / ROWS) + k;
      cost(.iterations = 1, .operations = 8, .loads = 2);
      multiply(row, load(M.index[i]), load(M.value[i]));
    }
  }
}
#else
static void work(void) {
  for (int line = 0; line < ROWS; line++) {
    cost(.iterations = 1, .operations = 8, .loads = 2);
    int32_t begin = load(M.start[line]), end = load(M.start[line + 1]);
    for (int32_t i = begin; i < end; i++) {
      cost(.iterations = 1, .operations = 8, .loads = 2);
      int32_t other = load(M.index[i]);
      if (FORMAT == CSR) multiply(line, other, load(M.value[i]));
      else multiply(other, line, load(M.value[i]));
    }
  }
}
#endif

static void main(void) {
  configure(b, SIZES(PADDED), STRIDES(1));
  configure(c, SIZES(PADDED), STRIDES(1));
  activate(work);
}

ROLE(P, .memory_bytes = sizeof(struct memory), .operands = 2, .main = main, .tasks = { LOCAL(work) })
