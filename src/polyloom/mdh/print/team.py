"""What emitted C knows of the team of threads that runs it; ``mdh/native/team`` has it."""

TEAM = """\
struct team { /* the threads that run a function together */
    int64_t threads;
    void (*wait)(struct team *team, int64_t me); /* for all others */
    void *(*take)(struct team *team, int64_t me, int64_t bytes); /* memory of this thread, */
    void (*give)(struct team *team, int64_t me); /* the last that it took back */
    void *(*take_common)(struct team *team, int64_t me, int64_t bytes); /* memory of all threads */
    void (*give_common)(struct team *team, int64_t me);
    void (*mark)(struct team *team, int64_t me, int64_t node); /* the end of a node */
};
"""
"""Who runs a function together; what it may ask of them."""

PART = """\
static inline int64_t part(int64_t points, int64_t me, const struct team *team)
{
    return points * me / team->threads;
}
"""
"""Where the iterations of a member of the team begin."""

WORK = """\
struct shares { /* the work before each of `pieces` of a loop, each of `size` of its iterations */
    int64_t pieces, size, before[257];
};

static inline int64_t part_by_work(const struct shares *shares, int64_t points, int64_t me,
        const struct team *team)
{
    if (me <= 0 || me >= team->threads)
        return me <= 0 ? 0 : points;
    const int64_t *before = shares->before;
    const int64_t wanted = before[shares->pieces] / team->threads * me;
    int64_t k = 0;
    while (k < shares->pieces - 1 && before[k + 1] <= wanted)
        k++;
    const int64_t here = before[k + 1] - before[k];
    const double rest = here > 0 ? (double)(wanted - before[k]) / (double)here : 0;
    const int64_t point = k * shares->size + (int64_t)(rest * (double)shares->size);
    return point < points ? point : points;
}
"""
"""The same where iterations differ in work."""
