static inline int wrap_add_int(int a, int b) { return (int)((uint)a + (uint)b); }

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void loop_t(__global int *b,
            __global int *a)
{
    for (long t = 0; t < 6; t++) {
        for (long i0 = 0; i0 < 15; i0++) {
            b[i0] = wrap_add_int(wrap_add_int(a[i0], a[i0 + 1]), (int)t);
        }
        if (t % 2 == 0) {
            for (long c0 = 0; c0 < 16; c0++) {
                a[c0] = b[c0];
            }
        } else {
            for (long i2 = 0; i2 < 15; i2++) {
                a[i2] = wrap_add_int(wrap_add_int(b[i2], b[i2 + 1]), (int)t);
            }
        }
    }
}
