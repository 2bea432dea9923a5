__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul(__global const float *restrict B,
            __global const float *restrict A,
            __global float *restrict C)
{
    const int group = get_group_id(0);
    __local float B_copy[64][32] __attribute__((aligned(64)));
    const int j_group = 32 * group;
    for (int c0 = 0; c0 < 64; c0++) {
        for (int j_first = 0; j_first < 32; j_first += 16) {
            vstore16(vload16(0, &B[64 * c0 + j_group + j_first]), 0, &B_copy[c0][j_first]);
        }
    }
    for (int i_first = 0; i_first < 64; i_first += 2) {
        float16 total_0_0 = (float16)(0.0f);
        float16 total_0_16 = (float16)(0.0f);
        float16 total_1_0 = (float16)(0.0f);
        float16 total_1_16 = (float16)(0.0f);
        total_0_0 = (float16)(0.0f);
        total_0_16 = (float16)(0.0f);
        total_1_0 = (float16)(0.0f);
        total_1_16 = (float16)(0.0f);
        for (int k = 0; k < 64; k++) {
            {
                const float16 A_0 = (float16)(A[64 * i_first + k]);
                const float16 B_copy_0 = vload16(0, &B_copy[k][0]);
                total_0_0 = total_0_0 + A_0 * B_copy_0;
                const float16 B_copy_1 = vload16(0, &B_copy[k][16]);
                total_0_16 = total_0_16 + A_0 * B_copy_1;
                const float16 A_1 = (float16)(A[64 * i_first + k + 64]);
                total_1_0 = total_1_0 + A_1 * B_copy_0;
                total_1_16 = total_1_16 + A_1 * B_copy_1;
            }
        }
        vstore16(total_0_0, 0, &C[64 * i_first + j_group]);
        vstore16(total_0_16, 0, &C[64 * i_first + j_group + 16]);
        vstore16(total_1_0, 0, &C[64 * i_first + j_group + 64]);
        vstore16(total_1_16, 0, &C[64 * i_first + j_group + 80]);
    }
}
