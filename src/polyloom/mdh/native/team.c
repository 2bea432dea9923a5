/* Threads that run a function together, awake for a while after each run. Built once, loaded once.
 *
 * The thread that calls `run_together` is number 0. Whoever waits looks at one word until it changes: for
 * AWAKE nanoseconds, then asleep; after ALONE of them it lets others have its core, one of the team maybe. Where
 * that brought what it waited for, two of the team share a core, and it lets the other have it at once next
 * time: until nobody else takes the core (it is back in less than SHORT), or a stranger does (for LONG).
 * A child that was forked has no threads; its first run makes them.
 *
 * Or the threads are those of an OpenMP runtime (`borrow_threads`): where others in this process use it, its
 * threads look for work for a while after theirs, and would keep a core from ours.
 */
#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { AWAKE = 200000, ALONE = 5000, SHORT = 1000, LONG = 500000, LINE = 64, LOOKS = 64, FEW = 8, STACK = 8 << 20 };

typedef void function(struct team *team, int64_t me, void *const *arrays, const int64_t *integers);

struct call { /* as Python writes it */
    struct crew *crew;
    function *function;
    void *const *arrays;
    const int64_t *integers;
    int64_t *times; /* 0, or when something last ended, then nanoseconds and number of runs for each node */
};

struct piece {
    void *memory;
    int64_t bytes;
};

struct scratch { /* memory of one thread: the first `used` pieces are taken, the others wait to be again */
    _Alignas(LINE) struct piece *pieces;
    int64_t used, there;
};

struct crew {
    struct team team; /* first: what emitted functions know */
    int64_t wanted, asked;
    int started;
    struct scratch *scratch;
    void *common;
    const struct call *call;
    struct crew *next;
    pthread_mutex_t one_run, asleep;
    pthread_cond_t changed;
    _Alignas(LINE) atomic_uint runs;
    _Alignas(LINE) atomic_uint arrived;
    _Alignas(LINE) atomic_uint meetings;
    _Alignas(LINE) atomic_uint sleepers;
};

struct worker {
    struct crew *crew;
    int64_t me;
    unsigned seen;
};

static struct crew *crews;

static struct { /* an OpenMP runtime; `parallel`: 0 where there is none */
    void (*parallel)(void (*)(void *), void *, unsigned threads, unsigned flags);
    int (*number)(void), (*threads)(void);
} openmp;

static void pause_a_moment(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static _Thread_local int64_t patience = ALONE; /* nanoseconds until this thread lets others have its core */

static void let_others(const atomic_uint *word, unsigned old, int64_t now)
{
    sched_yield();
    const int changed = atomic_load_explicit(word, memory_order_acquire) != old;
    const int64_t away = nanoseconds() - now;
    if (away < SHORT || away > LONG)
        patience = ALONE;
    else if (changed)
        patience = 0;
}

static void await_change(struct crew *crew, atomic_uint *word, unsigned old)
{
    for (int64_t looks = 0, end = 0;; looks++) {
        if (atomic_load_explicit(word, memory_order_acquire) != old)
            return;
        pause_a_moment();
        if (looks % LOOKS == LOOKS - 1 || (!patience && looks % FEW == FEW - 1)) {
            const int64_t now = nanoseconds();
            if (end == 0)
                end = now + AWAKE;
            if (now > end)
                break;
            if (now >= end - AWAKE + patience)
                let_others(word, old, now);
        }
    }
    pthread_mutex_lock(&crew->asleep);
    atomic_fetch_add(&crew->sleepers, 1); /* before looking again: `change` looks at it after changing */
    while (atomic_load(word) == old)
        pthread_cond_wait(&crew->changed, &crew->asleep);
    atomic_fetch_sub(&crew->sleepers, 1);
    pthread_mutex_unlock(&crew->asleep);
}

static void change(struct crew *crew, atomic_uint *word)
{
    atomic_fetch_add(word, 1);
    if (atomic_load(&crew->sleepers)) {
        pthread_mutex_lock(&crew->asleep);
        pthread_cond_broadcast(&crew->changed);
        pthread_mutex_unlock(&crew->asleep);
    }
}

static void wait_for_all(struct team *team, int64_t me)
{
    struct crew *crew = (struct crew *)team;
    (void)me;
    if (team->threads == 1)
        return;
    const unsigned meeting = atomic_load_explicit(&crew->meetings, memory_order_relaxed);
    if (atomic_fetch_add(&crew->arrived, 1) + 1 == team->threads) {
        atomic_store_explicit(&crew->arrived, 0, memory_order_relaxed);
        change(crew, &crew->meetings);
    } else {
        await_change(crew, &crew->meetings, meeting);
    }
}

static void out_of_memory(int64_t bytes)
{
    fprintf(stderr, "polyloom: no memory for a scratch array of %lld bytes\n", (long long)bytes);
    abort();
}

static void *take(struct team *team, int64_t me, int64_t bytes)
{
    struct scratch *scratch = &((struct crew *)team)->scratch[me];
    if (scratch->used == scratch->there) {
        struct piece *more = realloc(scratch->pieces, (size_t)(scratch->there + 1) * sizeof *more);
        if (!more)
            out_of_memory(bytes);
        more[scratch->there++] = (struct piece){0, 0};
        scratch->pieces = more;
    }
    struct piece *piece = &scratch->pieces[scratch->used++];
    if (piece->bytes < bytes || !piece->memory) {
        free(piece->memory);
        piece->bytes = (bytes + LINE) / LINE * LINE;
        if (posix_memalign(&piece->memory, LINE, (size_t)piece->bytes))
            out_of_memory(bytes);
    }
    return piece->memory;
}

static void give(struct team *team, int64_t me)
{
    ((struct crew *)team)->scratch[me].used--;
}

static void *take_common(struct team *team, int64_t me, int64_t bytes)
{
    struct crew *crew = (struct crew *)team;
    if (me == 0)
        crew->common = take(team, me, bytes);
    wait_for_all(team, me);
    void *memory = crew->common;
    wait_for_all(team, me);
    return memory;
}

static void give_common(struct team *team, int64_t me)
{
    wait_for_all(team, me);
    if (me == 0)
        give(team, me);
}

static void mark(struct team *team, int64_t me, int64_t node)
{
    int64_t *times = ((struct crew *)team)->call->times, now = nanoseconds();
    (void)me;
    times[1 + 2 * node] += now - times[0];
    times[2 + 2 * node]++;
    times[0] = now;
}

static void *work(void *argument)
{
    struct worker worker = *(struct worker *)argument;
    struct crew *crew = worker.crew;
    free(argument);
    for (;;) {
        await_change(crew, &crew->runs, worker.seen);
        worker.seen++;
        const struct call *call = crew->call;
        call->function(&crew->team, worker.me, call->arrays, call->integers);
        wait_for_all(&crew->team, worker.me);
    }
    return 0;
}

/* Start as many of the wanted threads as the system allows; signals stay with the caller's. */
static void start(struct crew *crew)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    crew->team.threads = 1;
    crew->started = 1;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int64_t me = 1; me < crew->wanted; me++) {
        pthread_t thread;
        struct worker *worker = malloc(sizeof *worker);
        if (!worker)
            break;
        *worker = (struct worker){crew, me, atomic_load(&crew->runs)};
        if (pthread_create(&thread, &attributes, work, worker)) {
            free(worker);
            break;
        }
        crew->team.threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, 0);
    pthread_attr_destroy(&attributes);
}

static void make_locks(struct crew *crew)
{
    pthread_mutex_init(&crew->one_run, 0);
    pthread_mutex_init(&crew->asleep, 0);
    pthread_cond_init(&crew->changed, 0);
}

/* In a child: threads are gone, whatever they held or waited for; OpenMP's runtime may wait for its own. */
static void forget_threads(void)
{
    openmp.parallel = 0;
    for (struct crew *crew = crews; crew; crew = crew->next) {
        make_locks(crew);
        atomic_store(&crew->arrived, 0);
        atomic_store(&crew->sleepers, 0);
        for (int64_t me = 0; me < crew->wanted; me++)
            crew->scratch[me].used = 0;
        crew->started = 0;
    }
}

static void watch_forks(void)
{
    static int watched;
    if (!watched)
        pthread_atfork(0, 0, forget_threads);
    watched = 1;
}

struct crew *new_crew(int64_t threads)
{
    struct crew *crew = 0;
    struct scratch *scratch = 0;
    if (posix_memalign((void **)&crew, LINE, sizeof *crew)
        || posix_memalign((void **)&scratch, LINE, (size_t)threads * sizeof *scratch))
        return 0;
    *crew = (struct crew){.team = {threads, wait_for_all, take, give, take_common, give_common, mark}};
    for (int64_t me = 0; me < threads; me++)
        scratch[me] = (struct scratch){0};
    crew->wanted = threads;
    crew->scratch = scratch;
    make_locks(crew);
    watch_forks();
    crew->next = crews;
    crews = crew;
    return crew;
}

int64_t threads_of(struct crew *crew) { return crew->started ? crew->team.threads : crew->wanted; }

/* Run on the threads of an OpenMP runtime from now on: its GOMP_parallel, omp_get_thread_num, ..._threads. */
void borrow_threads(void *parallel, void *number, void *threads)
{
    watch_forks();
    openmp.number = (int (*)(void))number;
    openmp.threads = (int (*)(void))threads;
    openmp.parallel = (void (*)(void (*)(void *), void *, unsigned, unsigned))parallel;
}

/* A thread of OpenMP's; where there are fewer than were asked for, the first does all alone. */
static void take_part(void *argument)
{
    struct crew *crew = argument;
    const struct call *call = crew->call;
    const int64_t me = openmp.number();
    if (openmp.threads() == crew->asked) {
        call->function(&crew->team, me, call->arrays, call->integers);
    } else if (me == 0) {
        crew->team.threads = 1;
        call->function(&crew->team, 0, call->arrays, call->integers);
        crew->team.threads = crew->asked;
    }
}

static void run_on_own_threads(struct crew *crew, const struct call *call)
{
    if (!crew->started)
        start(crew);
    if (crew->team.threads > 1)
        change(crew, &crew->runs);
    call->function(&crew->team, 0, call->arrays, call->integers);
    wait_for_all(&crew->team, 0);
}

void run_together(const struct call *call)
{
    struct crew *crew = call->crew;
    pthread_mutex_lock(&crew->one_run);
    crew->call = call;
    if (call->times)
        call->times[0] = nanoseconds();
    crew->asked = threads_of(crew);
    if (openmp.parallel && crew->asked > 1)
        openmp.parallel(take_part, crew, (unsigned)crew->asked, 0);
    else
        run_on_own_threads(crew, call);
    pthread_mutex_unlock(&crew->one_run);
}
