/* Threads are those of OpenMP where the compiler is told so (-fopenmp), else there is one. */
#ifdef _OPENMP
enum { LOOKS = 200, TURNS = 2000 };

struct meeting { /* of all threads, again and again: `over` have been */
    _Alignas(64) unsigned arrived, sleepers;
    pthread_mutex_t asleep;
    pthread_cond_t changed;
    _Alignas(64) unsigned over;
};

/* Look for a while; then let others have the core, one of the team maybe; then sleep. */
static void await_end(struct meeting *meeting, unsigned before)
{
    for (int looks = 0; looks < LOOKS + TURNS; looks++) {
        if (__atomic_load_n(&meeting->over, __ATOMIC_ACQUIRE) != before)
            return;
        if (looks >= LOOKS)
            sched_yield();
#if defined(__x86_64__) || defined(__i386__)
        else
            __builtin_ia32_pause();
#endif
    }
    pthread_mutex_lock(&meeting->asleep);
    __atomic_fetch_add(&meeting->sleepers, 1, __ATOMIC_SEQ_CST); /* before looking again: the last looks after */
    while (__atomic_load_n(&meeting->over, __ATOMIC_SEQ_CST) == before)
        pthread_cond_wait(&meeting->changed, &meeting->asleep);
    __atomic_fetch_sub(&meeting->sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&meeting->asleep);
}

/* OpenMP's own barriers look for milliseconds: where other programs have cores, each may take a turn of theirs. */
static void meet(struct meeting *meeting, int64_t threads)
{
    const unsigned before = __atomic_load_n(&meeting->over, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&meeting->arrived, 1, __ATOMIC_ACQ_REL) < threads) {
        await_end(meeting, before);
        return;
    }
    __atomic_store_n(&meeting->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&meeting->over, before + 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&meeting->sleepers, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&meeting->asleep);
        pthread_cond_broadcast(&meeting->changed);
        pthread_mutex_unlock(&meeting->asleep);
    }
}
#endif

struct shared { /* by all threads of a team */
    void *memory[2]; /* that one took for all, in turns: nobody takes a third piece before all have the first */
#ifdef _OPENMP
    struct meeting meeting;
    int64_t threads;
    double waited, begun, done; /* seconds that the first thread waited for others; when it had its part */
#endif
};

struct member { /* of a team: what each thread has of its own */
    struct team team;
    void *scratch; /* what it took last; in front of it stands what it took before */
    unsigned turns; /* pieces that were taken for all */
    struct shared *shared;
};

static void wait_for_all(struct team *team, int64_t me)
{
#ifdef _OPENMP
    struct shared *shared = ((struct member *)team)->shared;
    if (team->threads <= 1)
        return;
    const double before = me == 0 ? omp_get_wtime() : 0;
    meet(&shared->meeting, team->threads);
    if (me == 0)
        shared->waited += omp_get_wtime() - before;
#else
    (void)team;
    (void)me;
#endif
}

#ifdef MADV_HUGEPAGE
enum { LARGE_PAGE = 2 << 20 };
#else
enum { LARGE_PAGE = 64 };
#endif

/* Memory of its own; much of it in large pages where Linux has them: small ones are found one by one. */
static void *room(int64_t bytes)
{
    const int64_t unit = bytes < LARGE_PAGE ? 64 : LARGE_PAGE;
    if (bytes <= 0 || bytes >= INT64_MAX / 2)
        return NULL;
    const size_t size = (size_t)((bytes + unit - 1) / unit * unit);
    void *memory = aligned_alloc((size_t)unit, size);
#ifdef MADV_HUGEPAGE
    if (memory && unit == LARGE_PAGE)
        (void)madvise(memory, size, MADV_HUGEPAGE);
#endif
    return memory;
}

/* The same, or `frame`, `size` bytes of the caller's, where that is enough. */
static inline void *room_or(void *frame, int64_t size, int64_t bytes)
{
    return bytes > 0 && bytes <= size ? frame : room(bytes);
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
    void **memory = &member->shared->memory[member->turns++ % 2];
    if (me == 0)
        *memory = take(team, me, bytes);
    wait_for_all(team, me);
    return *memory;
}

static void give_common(struct team *team, int64_t me)
{
    wait_for_all(team, me);
    if (me == 0)
        give(team, me);
}

typedef void loops(struct team *team, int64_t me, void *const *arrays, const int64_t *integers);

static inline __attribute__((always_inline)) void take_part(int64_t me, int64_t threads, struct shared *shared,
        loops *function, void *const *arrays, const int64_t *integers)
{
    struct member member = {.team = {.threads = threads, .wait = wait_for_all, .take = take, .give = give,
                                     .take_common = take_common, .give_common = give_common},
                            .shared = shared};
    function(&member.team, me, arrays, integers);
}

struct pace { /* of the calls of one function: whether threads gain by sharing them */
    int missed; /* shared calls in a row in which they did not */
    int64_t until; /* by the clock of OpenMP, in nanoseconds: one thread does the calls before that */
};

#ifdef _OPENMP
enum { MISSED = 3, PAUSE = 20 };

static int gains(const struct pace *pace)
{
    return omp_get_wtime() * 1e9 >= (double)__atomic_load_n(&pace->until, __ATOMIC_RELAXED);
}

/* One of t threads alone takes t times as long as each of them works: they gain where they wait for less than
 * (t - 1) / t of the time. Where they do not, again and again, as other programs have the cores, calls of
 * PAUSE times that long are done by one, then it is tried again. Results are the same. */
static void judge(struct pace *pace, int64_t threads, double waited, double seconds)
{
    int missed = __atomic_load_n(&pace->missed, __ATOMIC_RELAXED) + 1;
    if (waited * (double)threads <= seconds * (double)(threads - 1))
        missed = 0;
    else if (missed >= MISSED)
        __atomic_store_n(&pace->until, (int64_t)((omp_get_wtime() + PAUSE * seconds) * 1e9), __ATOMIC_RELAXED);
    __atomic_store_n(&pace->missed, missed < MISSED ? missed : MISSED - 1, __ATOMIC_RELAXED);
}

static void run_shared(loops *function, struct pace *pace, void *const *arrays, const int64_t *integers)
{
    struct shared shared = {.memory = {NULL}};
    pthread_mutex_init(&shared.meeting.asleep, NULL);
    pthread_cond_init(&shared.meeting.changed, NULL);
    const double begin = omp_get_wtime();
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0)
            shared.begun = omp_get_wtime(); /* others may come late to the start as well */
        take_part(omp_get_thread_num(), omp_get_num_threads(), &shared, function, arrays, integers);
        if (omp_get_thread_num() == 0) {
            shared.threads = omp_get_num_threads();
            shared.done = omp_get_wtime();
        }
    }
    const double end = omp_get_wtime();
    judge(pace, shared.threads, shared.begun - begin + shared.waited + end - shared.done, end - begin);
    pthread_cond_destroy(&shared.meeting.changed);
    pthread_mutex_destroy(&shared.meeting.asleep);
}
#endif

static inline __attribute__((always_inline)) void run(loops *function, struct pace *pace, int is_shared,
        void *const *arrays, const int64_t *integers)
{
    struct shared shared = {.memory = {NULL}};
#ifdef _OPENMP
    if (is_shared && gains(pace)) {
        run_shared(function, pace, arrays, integers);
        return;
    }
#endif
    (void)pace;
    (void)is_shared;
    take_part(0, 1, &shared, function, arrays, integers);
}

struct touched { /* an array of the caller, of which the loops touch the bytes from `first` to before `end` */
    const void *array;
    int64_t first, end;
    int written;
};

static inline int overlap(const struct touched *one, const struct touched *other)
{
    const uintptr_t p = (uintptr_t)one->array, q = (uintptr_t)other->array;
    const int is_used = one->first < one->end && other->first < other->end;
    return is_used && (one->written || other->written) && p + (uintptr_t)one->first < q + (uintptr_t)other->end
        && q + (uintptr_t)other->first < p + (uintptr_t)one->end;
}

/* Whether no byte that is written is one of another array, and every array has elements. */
static inline int are_apart(const struct touched *arrays, int count)
{
    for (int a = 0; a < count; a++) {
        if (arrays[a].end < 0)
            return 0;
        for (int b = 0; b < a; b++)
            if (overlap(arrays + a, arrays + b))
                return 0;
    }
    return 1;
}

/* The same, written out: calls that do little shall cost little. */
static inline __attribute__((always_inline)) int are_few_apart(const struct touched *arrays, int count)
{
    UNROLLED for (int a = 0; a < count; a++) {
        if (arrays[a].end < 0)
            return 0;
        UNROLLED for (int b = 0; b < a; b++)
            if (overlap(arrays + a, arrays + b))
                return 0;
    }
    return 1;
}

/* The bytes of an array; -1 where it has no elements, or more than an address counts. */
static inline int64_t bytes_of(int64_t element, int dimensions, const int64_t *extents)
{
    for (int d = 0; d < dimensions; d++)
        if (extents[d] <= 0 || __builtin_mul_overflow(element, extents[d], &element)
            || element > INT64_MAX / 2)
            return -1;
    return element;
}

/* The bytes of some rows of an array, of which each takes `row`; -1 where that has no elements. */
static inline int64_t rows_of(int64_t row, int64_t rows)
{
    return row < 0 ? -1 : row * rows;
}
