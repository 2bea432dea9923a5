/* Matrix units as CUDA has them, for kernels that run on this machine.
 *
 * A block is only filled, loaded, multiplied and stored: which lane of a warp has which element of it is nobody's
 * business. Here each lane loads and multiplies all of a block for itself, when it comes to that, and stores a part
 * of its own; so what the lanes of a warp see differs where a barrier is missing. Sums are taken from the last
 * product to the first. Blocks in memory begin at multiples of 32 bytes, rows are multiples of 16 bytes apart, or
 * the process ends.
 */
#ifndef MMA_H
#define MMA_H

#include "cuda_fp16.h"

namespace nvcuda {
namespace wmma {
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
template <typename Use, int m, int n, int k, typename T, typename Layout = void> struct fragment {
  static_assert(m == 16 && n == 16 && k == 16, "the shape of a block");
  float x[16][16];
};
template <typename Layout> struct is_rows { static const bool value = false; };
template <> struct is_rows<row_major> { static const bool value = true; };
typedef fragment<accumulator, 16, 16, 16, float> sums;

static inline void check(const void *place, size_t row) {
  if ((uintptr_t)place % 32 || row % 16) {
    fprintf(stderr, "mma.h: a block does not lie as a matrix unit needs it\n");
    abort();
  }
}
static inline void fill_fragment(sums &f, float value) {
  for (int k = 0; k < 256; k++)
    f.x[k / 16][k % 16] = value;
}
template <typename Use, typename Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, __half, Layout> &f, const __half *p, unsigned n) {
  check(p, 2 * n);
  for (int k = 0; k < 256; k++)
    (is_rows<Layout>::value ? f.x[k / 16][k % 16] : f.x[k % 16][k / 16]) = (float)p[k / 16 * n + k % 16];
}
template <typename A, typename B>
void mma_sync(sums &d, const fragment<matrix_a, 16, 16, 16, __half, A> &a,
              const fragment<matrix_b, 16, 16, 16, __half, B> &b, const sums &c) {
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      float sum = c.x[i][j];
      for (int k = 15; k >= 0; k--)
        sum += a.x[i][k] * b.x[k][j];
      d.x[i][j] = sum;
    }
}
static inline void store_matrix_sync(float *p, const sums &f, unsigned n, layout_t layout) {
  check(p, 4 * n);
  for (int k = 0; k < 256; k++)
    if ((k + 5 * (k / 32)) % 32 == (int)threadIdx.x % 32)
      p[layout == mem_row_major ? k / 16 * n + k % 16 : k % 16 * n + k / 16] = f.x[k / 16][k % 16];
}
} // namespace wmma
} // namespace nvcuda

#endif
