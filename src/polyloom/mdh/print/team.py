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
