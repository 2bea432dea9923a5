static inline long wrap_add_long(long a, long b) { return (long)((ulong)a + (ulong)b); }

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void rows(__global long *line,
          __global const int *restrict A,
          __global long *restrict y,
          const long n)
{
    const long i = get_group_id(0);
    long s = 0L;
    s = 0L;
    for (long j = 0; j <= i; j++) {
        if (j % 2 == 1) {
            line[i * n + j] = (long)A[i * n + j];
            s = wrap_add_long(s, wrap_add_long(line[i * n + j], (long)j));
        }
    }
    y[i] = s;
}
