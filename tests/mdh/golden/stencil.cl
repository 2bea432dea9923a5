static inline long lesser(long a, long b) { return a < b ? a : b; }

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void stencil(__global const float *restrict x,
             __global const float *restrict w,
             __global float *restrict y)
{
    const int group = get_group_id(0);
    const int i_group = 8 * group;
    for (int i_first = i_group; i_first < lesser(30, i_group + 8); i_first += 2) {
        for (int j_first = 0; j_first < 56; j_first += 8) {
            float8 total_0_0 = (float8)(0.0f);
            float8 total_1_0 = (float8)(0.0f);
            {
                total_0_0 = (float8)(0.0f);
                total_1_0 = (float8)(0.0f);
                const float8 w_0 = (float8)(w[0]);
                total_0_0 = total_0_0 + vload8(0, &x[62 * i_first + j_first]) * w_0;
                const float8 w_1 = (float8)(w[1]);
                total_0_0 = total_0_0 + vload8(0, &x[62 * i_first + j_first + 1]) * w_1;
                const float8 w_2 = (float8)(w[2]);
                total_0_0 = total_0_0 + vload8(0, &x[62 * i_first + j_first + 2]) * w_2;
                const float8 x_0 = vload8(0, &x[62 * i_first + j_first + 62]);
                const float8 w_3 = (float8)(w[3]);
                total_0_0 = total_0_0 + x_0 * w_3;
                total_1_0 = total_1_0 + x_0 * w_0;
                const float8 x_1 = vload8(0, &x[62 * i_first + j_first + 63]);
                const float8 w_4 = (float8)(w[4]);
                total_0_0 = total_0_0 + x_1 * w_4;
                total_1_0 = total_1_0 + x_1 * w_1;
                const float8 x_2 = vload8(0, &x[62 * i_first + j_first + 64]);
                const float8 w_5 = (float8)(w[5]);
                total_0_0 = total_0_0 + x_2 * w_5;
                total_1_0 = total_1_0 + x_2 * w_2;
                const float8 x_3 = vload8(0, &x[62 * i_first + j_first + 124]);
                const float8 w_6 = (float8)(w[6]);
                total_0_0 = total_0_0 + x_3 * w_6;
                total_1_0 = total_1_0 + x_3 * w_3;
                const float8 x_4 = vload8(0, &x[62 * i_first + j_first + 125]);
                const float8 w_7 = (float8)(w[7]);
                total_0_0 = total_0_0 + x_4 * w_7;
                total_1_0 = total_1_0 + x_4 * w_4;
                const float8 x_5 = vload8(0, &x[62 * i_first + j_first + 126]);
                const float8 w_8 = (float8)(w[8]);
                total_0_0 = total_0_0 + x_5 * w_8;
                total_1_0 = total_1_0 + x_5 * w_5;
                total_1_0 = total_1_0 + vload8(0, &x[62 * i_first + j_first + 186]) * w_6;
                total_1_0 = total_1_0 + vload8(0, &x[62 * i_first + j_first + 187]) * w_7;
                total_1_0 = total_1_0 + vload8(0, &x[62 * i_first + j_first + 188]) * w_8;
                const float8 y_0 = total_0_0;
                const float8 y_1 = total_1_0;
                vstore8(y_0, 0, &y[60 * i_first + j_first]);
                vstore8(y_1, 0, &y[60 * i_first + j_first + 60]);
            }
        }
        float4 total_0_0_1 = (float4)(0.0f);
        float4 total_1_0_1 = (float4)(0.0f);
        {
            total_0_0_1 = (float4)(0.0f);
            total_1_0_1 = (float4)(0.0f);
            const float4 w_9 = (float4)(w[0]);
            total_0_0_1 = total_0_0_1 + vload4(0, &x[62 * i_first + 56]) * w_9;
            const float4 w_10 = (float4)(w[1]);
            total_0_0_1 = total_0_0_1 + vload4(0, &x[62 * i_first + 57]) * w_10;
            const float4 w_11 = (float4)(w[2]);
            total_0_0_1 = total_0_0_1 + vload4(0, &x[62 * i_first + 58]) * w_11;
            const float4 x_6 = vload4(0, &x[62 * i_first + 118]);
            const float4 w_12 = (float4)(w[3]);
            total_0_0_1 = total_0_0_1 + x_6 * w_12;
            total_1_0_1 = total_1_0_1 + x_6 * w_9;
            const float4 x_7 = vload4(0, &x[62 * i_first + 119]);
            const float4 w_13 = (float4)(w[4]);
            total_0_0_1 = total_0_0_1 + x_7 * w_13;
            total_1_0_1 = total_1_0_1 + x_7 * w_10;
            const float4 x_8 = vload4(0, &x[62 * i_first + 120]);
            const float4 w_14 = (float4)(w[5]);
            total_0_0_1 = total_0_0_1 + x_8 * w_14;
            total_1_0_1 = total_1_0_1 + x_8 * w_11;
            const float4 x_9 = vload4(0, &x[62 * i_first + 180]);
            const float4 w_15 = (float4)(w[6]);
            total_0_0_1 = total_0_0_1 + x_9 * w_15;
            total_1_0_1 = total_1_0_1 + x_9 * w_12;
            const float4 x_10 = vload4(0, &x[62 * i_first + 181]);
            const float4 w_16 = (float4)(w[7]);
            total_0_0_1 = total_0_0_1 + x_10 * w_16;
            total_1_0_1 = total_1_0_1 + x_10 * w_13;
            const float4 x_11 = vload4(0, &x[62 * i_first + 182]);
            const float4 w_17 = (float4)(w[8]);
            total_0_0_1 = total_0_0_1 + x_11 * w_17;
            total_1_0_1 = total_1_0_1 + x_11 * w_14;
            total_1_0_1 = total_1_0_1 + vload4(0, &x[62 * i_first + 242]) * w_15;
            total_1_0_1 = total_1_0_1 + vload4(0, &x[62 * i_first + 243]) * w_16;
            total_1_0_1 = total_1_0_1 + vload4(0, &x[62 * i_first + 244]) * w_17;
            const float4 y_2 = total_0_0_1;
            const float4 y_3 = total_1_0_1;
            vstore4(y_2, 0, &y[60 * i_first + 56]);
            vstore4(y_3, 0, &y[60 * i_first + 116]);
        }
    }
}
