#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#include <math.h>
#include <stdint.h>
#endif

extern "C" __global__ void __launch_bounds__(32)
matmul(const float *__restrict__ A,
       const float *__restrict__ B,
       float *__restrict__ C)
{
    const int group = blockIdx.x;
    const int item = threadIdx.x;
    const int i_group = 16 * (group / 2);
    const int j_group = 32 * (group % 2);
    const int i_item = item / 8;
    const int j_item = item % 8;
    float total_0_0[4];
    float total_1_0[4];
    float total_2_0[4];
    float total_3_0[4];
    for (int lane = 0; lane < 4; lane++) {
        total_0_0[lane] = 0.0f;
        total_1_0[lane] = 0.0f;
        total_2_0[lane] = 0.0f;
        total_3_0[lane] = 0.0f;
    }
    for (int k = 0; k < 64; k++) {
        for (int lane = 0; lane < 4; lane++) {
            const float B_0 = B[64 * k + lane + 4 * j_item + j_group];
            total_0_0[lane] = total_0_0[lane] + A[256 * i_item + 64 * i_group + k] * B_0;
            total_1_0[lane] = total_1_0[lane] + A[256 * i_item + 64 * i_group + k + 64] * B_0;
            total_2_0[lane] = total_2_0[lane] + A[256 * i_item + 64 * i_group + k + 128] * B_0;
            total_3_0[lane] = total_3_0[lane] + A[256 * i_item + 64 * i_group + k + 192] * B_0;
        }
    }
    for (int lane = 0; lane < 4; lane++) {
        C[256 * i_item + 64 * i_group + lane + 4 * j_item + j_group] = total_0_0[lane];
        C[256 * i_item + 64 * i_group + lane + 4 * j_item + j_group + 64] = total_1_0[lane];
        C[256 * i_item + 64 * i_group + lane + 4 * j_item + j_group + 128] = total_2_0[lane];
        C[256 * i_item + 64 * i_group + lane + 4 * j_item + j_group + 192] = total_3_0[lane];
    }
}
