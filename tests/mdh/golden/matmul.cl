__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul(__global float *restrict C,
            __global const float *restrict A,
            __global const float *restrict B)
{
    __local float B_copy[2048] __attribute__((aligned(64)));
    const int group = get_group_id(0);
    const int j_first = group * 32;
    // B_copy: what the tile reads of B
    for (int at_0 = 0; at_0 < 64; at_0++) {
        int at_1 = 0;
        for (; at_1 + 16 <= 32; at_1 += 16) {
            vstore16(vload16(0, B + j_first + at_0 * (64) + at_1), 0, B_copy + at_0 * 32 + at_1);
        }
    }
    for (int i = 0; i < 64; i += 2) {
        for (int j = j_first; j < j_first + 32; j += 32) {
            float16 C_sum_0_0 = (float16)(0.0f);
            float16 C_sum_0_1 = (float16)(0.0f);
            float16 C_sum_1_0 = (float16)(0.0f);
            float16 C_sum_1_1 = (float16)(0.0f);
            for (int k = 0; k < 64; k += 1) {
                const float A_0 = A[64 * i + k];
                const float16 B_0 = vload16(0, B_copy + j + 32 * k - j_first);
                C_sum_0_0 = fma((float16)(A_0), B_0, C_sum_0_0);
                const float16 B_1 = vload16(0, B_copy + j + 32 * k - j_first + 16);
                C_sum_0_1 = fma((float16)(A_0), B_1, C_sum_0_1);
                const float A_1 = A[64 * i + k + 64];
                C_sum_1_0 = fma((float16)(A_1), B_0, C_sum_1_0);
                C_sum_1_1 = fma((float16)(A_1), B_1, C_sum_1_1);
            }
            vstore16(C_sum_0_0, 0, C + 64 * i + j);
            vstore16(C_sum_0_1, 0, C + 64 * i + j + 16);
            vstore16(C_sum_1_0, 0, C + 64 * i + j + 64);
            vstore16(C_sum_1_1, 0, C + 64 * i + j + 80);
        }
    }
}
