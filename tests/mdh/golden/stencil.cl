static inline long lesser(long a, long b) { return a < b ? a : b; }

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void stencil(__global float *restrict y,
             __global const float *restrict x,
             __global const float *restrict w)
{
    const int group = get_group_id(0);
    const int i_first = group * 8;
    const int i_end = lesser(i_first + 8, 30);
    const float w_0 = w[0];
    const float w_1 = w[1];
    const float w_2 = w[2];
    const float w_3 = w[3];
    const float w_4 = w[4];
    const float w_5 = w[5];
    const float w_6 = w[6];
    const float w_7 = w[7];
    const float w_8 = w[8];
    for (int i = i_first; i < i_end; i += 2) {
        {
            int j = 0;
            for (; j + 8 <= 60; j += 8) {
                float8 y_sum_0_0 = (float8)(0.0f);
                float8 y_sum_1_0 = (float8)(0.0f);
                const float8 x_0 = vload8(0, x + 62 * i + j);
                y_sum_0_0 = fma(x_0, (float8)(w_0), y_sum_0_0);
                const float8 x_1 = vload8(0, x + 62 * i + j + 1);
                y_sum_0_0 = fma(x_1, (float8)(w_1), y_sum_0_0);
                const float8 x_2 = vload8(0, x + 62 * i + j + 2);
                y_sum_0_0 = fma(x_2, (float8)(w_2), y_sum_0_0);
                const float8 x_3 = vload8(0, x + 62 * i + j + 62);
                y_sum_0_0 = fma(x_3, (float8)(w_3), y_sum_0_0);
                y_sum_1_0 = fma(x_3, (float8)(w_0), y_sum_1_0);
                const float8 x_4 = vload8(0, x + 62 * i + j + 63);
                y_sum_0_0 = fma(x_4, (float8)(w_4), y_sum_0_0);
                y_sum_1_0 = fma(x_4, (float8)(w_1), y_sum_1_0);
                const float8 x_5 = vload8(0, x + 62 * i + j + 64);
                y_sum_0_0 = fma(x_5, (float8)(w_5), y_sum_0_0);
                y_sum_1_0 = fma(x_5, (float8)(w_2), y_sum_1_0);
                const float8 x_6 = vload8(0, x + 62 * i + j + 124);
                y_sum_0_0 = fma(x_6, (float8)(w_6), y_sum_0_0);
                y_sum_1_0 = fma(x_6, (float8)(w_3), y_sum_1_0);
                const float8 x_7 = vload8(0, x + 62 * i + j + 125);
                y_sum_0_0 = fma(x_7, (float8)(w_7), y_sum_0_0);
                y_sum_1_0 = fma(x_7, (float8)(w_4), y_sum_1_0);
                const float8 x_8 = vload8(0, x + 62 * i + j + 126);
                y_sum_0_0 = fma(x_8, (float8)(w_8), y_sum_0_0);
                y_sum_1_0 = fma(x_8, (float8)(w_5), y_sum_1_0);
                const float8 x_9 = vload8(0, x + 62 * i + j + 186);
                y_sum_1_0 = fma(x_9, (float8)(w_6), y_sum_1_0);
                const float8 x_10 = vload8(0, x + 62 * i + j + 187);
                y_sum_1_0 = fma(x_10, (float8)(w_7), y_sum_1_0);
                const float8 x_11 = vload8(0, x + 62 * i + j + 188);
                y_sum_1_0 = fma(x_11, (float8)(w_8), y_sum_1_0);
                vstore8(y_sum_0_0, 0, y + 60 * i + j);
                vstore8(y_sum_1_0, 0, y + 60 * i + j + 60);
            }
            if (j < 60) {
                float4 y_sum_0_1 = (float4)(0.0f);
                float4 y_sum_1_1 = (float4)(0.0f);
                const float4 x_12 = vload4(0, x + 62 * i + j);
                y_sum_0_1 = fma(x_12, (float4)(w_0), y_sum_0_1);
                const float4 x_13 = vload4(0, x + 62 * i + j + 1);
                y_sum_0_1 = fma(x_13, (float4)(w_1), y_sum_0_1);
                const float4 x_14 = vload4(0, x + 62 * i + j + 2);
                y_sum_0_1 = fma(x_14, (float4)(w_2), y_sum_0_1);
                const float4 x_15 = vload4(0, x + 62 * i + j + 62);
                y_sum_0_1 = fma(x_15, (float4)(w_3), y_sum_0_1);
                y_sum_1_1 = fma(x_15, (float4)(w_0), y_sum_1_1);
                const float4 x_16 = vload4(0, x + 62 * i + j + 63);
                y_sum_0_1 = fma(x_16, (float4)(w_4), y_sum_0_1);
                y_sum_1_1 = fma(x_16, (float4)(w_1), y_sum_1_1);
                const float4 x_17 = vload4(0, x + 62 * i + j + 64);
                y_sum_0_1 = fma(x_17, (float4)(w_5), y_sum_0_1);
                y_sum_1_1 = fma(x_17, (float4)(w_2), y_sum_1_1);
                const float4 x_18 = vload4(0, x + 62 * i + j + 124);
                y_sum_0_1 = fma(x_18, (float4)(w_6), y_sum_0_1);
                y_sum_1_1 = fma(x_18, (float4)(w_3), y_sum_1_1);
                const float4 x_19 = vload4(0, x + 62 * i + j + 125);
                y_sum_0_1 = fma(x_19, (float4)(w_7), y_sum_0_1);
                y_sum_1_1 = fma(x_19, (float4)(w_4), y_sum_1_1);
                const float4 x_20 = vload4(0, x + 62 * i + j + 126);
                y_sum_0_1 = fma(x_20, (float4)(w_8), y_sum_0_1);
                y_sum_1_1 = fma(x_20, (float4)(w_5), y_sum_1_1);
                const float4 x_21 = vload4(0, x + 62 * i + j + 186);
                y_sum_1_1 = fma(x_21, (float4)(w_6), y_sum_1_1);
                const float4 x_22 = vload4(0, x + 62 * i + j + 187);
                y_sum_1_1 = fma(x_22, (float4)(w_7), y_sum_1_1);
                const float4 x_23 = vload4(0, x + 62 * i + j + 188);
                y_sum_1_1 = fma(x_23, (float4)(w_8), y_sum_1_1);
                vstore4(y_sum_0_1, 0, y + 60 * i + j);
                vstore4(y_sum_1_1, 0, y + 60 * i + j + 60);
            }
        }
    }
}
