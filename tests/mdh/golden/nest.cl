static inline long wrap_add_long(long a, long b) { return (long)((ulong)a + (ulong)b); }

__kernel void rows(__global const int *restrict A,
                   __global long *restrict y,
                   __global long *all_line,
                   long n)
{
    long i = get_global_id(0);
    if (i >= n) return;
    long s;
    __global long *line = all_line + i * n;
    s = 0L;
    for (long j = 0; j <= i; j++) {
        if (j % 2 == 1) {
            line[j] = (long)A[i * n + j];
            s = wrap_add_long(s, wrap_add_long(line[j], (long)j));
        }
    }
    y[i] = s;
}
