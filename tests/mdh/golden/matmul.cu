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

template <typename T, int n> struct __align__(sizeof(T) * n < 16 ? sizeof(T) * n : 16) lanes {
    T lane[n];
};
template <int n, typename T> static __device__ inline lanes<T, n> &lanes_at(T *place)
{
    return *(lanes<T, n> *)place;
}
template <int n, typename T> static __device__ inline const lanes<T, n> &lanes_at(const T *place)
{
    return *(const lanes<T, n> *)place;
}

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
    #pragma unroll
    for (int lane = 0; lane < 4; lane++) {
        total_0_0[lane] = 0.0f;
        total_1_0[lane] = 0.0f;
        total_2_0[lane] = 0.0f;
        total_3_0[lane] = 0.0f;
    }
    for (int k = 0; k < 64; k++) {
        {
            const lanes<float, 4> B_lanes = lanes_at<4>(&B[64 * k + 4 * j_item + j_group]);
            #pragma unroll
            for (int lane = 0; lane < 4; lane++) {
                const float B_0 = B_lanes.lane[lane];
                total_0_0[lane] = total_0_0[lane] + A[256 * i_item + 64 * i_group + k] * B_0;
                total_1_0[lane] = total_1_0[lane] + A[256 * i_item + 64 * i_group + k + 64] * B_0;
                total_2_0[lane] = total_2_0[lane] + A[256 * i_item + 64 * i_group + k + 128] * B_0;
                total_3_0[lane] = total_3_0[lane] + A[256 * i_item + 64 * i_group + k + 192] * B_0;
            }
        }
    }
    {
        lanes<float, 4> C_lanes;
        lanes<float, 4> C_lanes1;
        lanes<float, 4> C_lanes2;
        lanes<float, 4> C_lanes3;
        #pragma unroll
        for (int lane = 0; lane < 4; lane++) {
            C_lanes.lane[lane] = total_0_0[lane];
            C_lanes1.lane[lane] = total_1_0[lane];
            C_lanes2.lane[lane] = total_2_0[lane];
            C_lanes3.lane[lane] = total_3_0[lane];
        }
        lanes_at<4>(&C[256 * i_item + 64 * i_group + 4 * j_item + j_group]) = C_lanes;
        lanes_at<4>(&C[256 * i_item + 64 * i_group + 4 * j_item + j_group + 64]) = C_lanes1;
        lanes_at<4>(&C[256 * i_item + 64 * i_group + 4 * j_item + j_group + 128]) = C_lanes2;
        lanes_at<4>(&C[256 * i_item + 64 * i_group + 4 * j_item + j_group + 192]) = C_lanes3;
    }
}
