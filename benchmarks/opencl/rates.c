/* What the machine can do, for peak_native.py: all threads run each function, and nothing else. */
#include <stdint.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define CHAINS 12 /* more than the latency of a fused multiply-add times two units; fewer than the registers */
typedef float vector __attribute__((vector_size(4 * LANES), aligned(4)));

int64_t operations(int64_t rounds) { return 2 * rounds * CHAINS * LANES; }

void fma_peak(int64_t threads, int64_t rounds, float *out) {
#pragma omp parallel for schedule(static, 1)
  for (int64_t t = 0; t < threads; t++) {
    const vector x = (vector){0} + 0.999f, y = (vector){0} + 1e-3f;
    vector a[CHAINS];
#pragma GCC unroll 16
    for (int c = 0; c < CHAINS; c++) a[c] = x + (float)c;
    for (int64_t n = 0; n < rounds; n++)
#pragma GCC unroll 16
      for (int c = 0; c < CHAINS; c++) a[c] = a[c] * x + y;
    vector sum = a[0];
#pragma GCC unroll 16
    for (int c = 1; c < CHAINS; c++) sum += a[c];
    for (int lane = 0; lane < LANES; lane++) out[t * LANES + lane] = sum[lane];
  }
}

void scale(int64_t n, const float *restrict in, float *restrict out) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++) out[i] = in[i] * 2.0f;
}

float sum(int64_t n, const float *in) {
  float total = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : total)
  for (int64_t i = 0; i < n; i++) total += in[i];
  return total;
}
