/* Threads are those of OpenMP where the compiler is told so (-fopenmp), else there is one. */
struct member { /* of a team: what each thread has of its own */
    struct team team;
    void *scratch; /* what it took last; in front of it stands what it took before */
    void **common;
};

static void wait_for_all(struct team *team, int64_t me)
{
    (void)me;
    if (team->threads > 1) {
#ifdef _OPENMP
#pragma omp barrier
#endif
    }
}

static void *room(int64_t bytes)
{
    return bytes > 0 && bytes < INT64_MAX / 2 ? aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64) : NULL;
}

static void *take(struct team *team, int64_t me, int64_t bytes)
{
    struct member *member = (struct member *)team;
    void **memory = room((bytes > 0 ? bytes : 0) + 64);
    (void)me;
    if (!memory) {
        fprintf(stderr, "no memory for a scratch array of %lld bytes\n", (long long)bytes);
        abort();
    }
    memory[0] = member->scratch;
    member->scratch = memory + 64 / sizeof *memory;
    return member->scratch;
}

static void give(struct team *team, int64_t me)
{
    struct member *member = (struct member *)team;
    void **memory = (void **)member->scratch - 64 / sizeof *memory;
    (void)me;
    member->scratch = memory[0];
    free(memory);
}

static void *take_common(struct team *team, int64_t me, int64_t bytes)
{
    struct member *member = (struct member *)team;
    if (me == 0)
        *member->common = take(team, me, bytes);
    wait_for_all(team, me);
    void *memory = *member->common;
    wait_for_all(team, me);
    return memory;
}

static void give_common(struct team *team, int64_t me)
{
    wait_for_all(team, me);
    if (me == 0)
        give(team, me);
}

typedef void loops(struct team *team, int64_t me, void *const *arrays, const int64_t *integers);

static void take_part(int64_t me, int64_t threads, void **common, loops *function, void *const *arrays,
                      const int64_t *integers)
{
    struct member member = {.team = {.threads = threads, .wait = wait_for_all, .take = take, .give = give,
                                     .take_common = take_common, .give_common = give_common},
                            .common = common};
    function(&member.team, me, arrays, integers);
}

static void run(loops *function, int is_shared, void *const *arrays, const int64_t *integers)
{
    void *common = NULL;
#ifdef _OPENMP
    if (is_shared) {
#pragma omp parallel
        take_part(omp_get_thread_num(), omp_get_num_threads(), &common, function, arrays, integers);
        return;
    }
#endif
    (void)is_shared;
    take_part(0, 1, &common, function, arrays, integers);
}

struct touched { /* an array of the caller, of which the loops touch the bytes from `first` to before `end` */
    const void *array;
    int64_t first, end;
    int written;
};

/* Whether no byte that is written is one of another array, and every array has elements. */
static int are_apart(const struct touched *arrays, int count)
{
    for (int a = 0; a < count; a++) {
        if (arrays[a].end < 0)
            return 0;
        for (int b = 0; b < a; b++) {
            const struct touched *one = arrays + a, *other = arrays + b;
            const uintptr_t p = (uintptr_t)one->array, q = (uintptr_t)other->array;
            const int is_used = one->first < one->end && other->first < other->end;
            if (is_used && (one->written || other->written) && p + (uintptr_t)one->first < q + (uintptr_t)other->end
                && q + (uintptr_t)other->first < p + (uintptr_t)one->end)
                return 0;
        }
    }
    return 1;
}

/* The bytes of an array; -1 where it has no elements, or more than an address counts. */
static inline int64_t bytes_of(int64_t element, int dimensions, const int64_t *extents)
{
    for (int d = 0; d < dimensions; d++) {
        if (extents[d] <= 0 || element > INT64_MAX / 2 / extents[d])
            return -1;
        element *= extents[d];
    }
    return element;
}
