/* Calls from Python like one before: what may be another now is looked at here, then the team runs.
 *
 * No header of Python or NumPy is needed: functions of CPython come as addresses, and how its objects and
 * arrays of NumPy begin is stated below; `python_calls.py` compares that with an array of the process first.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LINE = 64 };
enum { SAME, INTEGER, DOUBLE, FLOAT, ARRAY }; /* kinds of arguments */

struct crew;

struct call { /* as in team.c */
    struct crew *crew;
    void *function;
    void *const *arrays;
    const int64_t *integers;
    int64_t *times;
};

extern void run_together(const struct call *call);

struct object {
    intptr_t references;
    struct object *type;
};

struct array {
    struct object head;
    char *data;
    int dimensions;
    intptr_t *shape, *strides;
    struct object *base, *dtype;
    int flags;
};

struct python { /* functions and objects of this process */
    struct object *integer, *real, *float64, *float32, *array, *zeros, *refused;
    void *(*release)(void);
    void (*acquire)(void *);
    long long (*integer_of)(struct object *);
    double (*real_of)(struct object *);
    struct object *(*call)(struct object *, struct object *, struct object *);
    struct object *(*pack)(intptr_t, ...);
    struct object *(*tuple)(intptr_t);
    int (*put)(struct object *, intptr_t, struct object *);
    struct object *(*item)(struct object *, intptr_t);
    intptr_t (*size)(struct object *);
    struct object *(*from_integer)(long long);
    int (*compare)(struct object *, struct object *);
    struct object *(*fault)(void);
    void (*forget_fault)(void);
    void (*keep)(struct object *);
    void (*drop)(struct object *);
    struct object *(*call_with)(struct object *, struct object *const *, size_t, struct object *);
    struct object *(*attribute)(struct object *, struct object *);
    struct object *none, *again, *other; /* the latter: names of attributes */
};

struct argument {
    int64_t kind;
    struct object *name, *value; /* value: of a SAME one */
    int64_t number;              /* of an INTEGER */
    int64_t place;               /* of its address in the call, or -1 */
    int64_t written, flags, dimensions;
    const int64_t *shape;
    struct object *dtype;
    int64_t bytes;
    const char *before; /* where it was when all was checked */
};

struct result {
    int64_t argument; /* that it is, or -1 for a new array, and of this: */
    int64_t place;
    struct object *room, *shape, *dtype; /* room: arguments of numpy.zeros */
};

struct plan {
    const int64_t *valid;
    struct crew *crew;
    void *function;
    const int64_t *integers;
    void *const *addresses;
    int64_t count;
    const struct argument *arguments;
    int64_t given, positional;
    const struct result *results;
    int64_t made;
};

static struct python python;

void set_python(const struct python *given) { python = *given; }

/* What `looks` at an array: for a comparison with what Python says. */
void describe(const struct array *array, int64_t *found)
{
    found[0] = (int64_t)(intptr_t)array->head.type;
    found[1] = (int64_t)(intptr_t)array->data;
    found[2] = array->dimensions;
    found[3] = array->shape[0];
    found[4] = array->shape[1];
    found[5] = array->strides[0];
    found[6] = (int64_t)(intptr_t)array->base;
    found[7] = (int64_t)(intptr_t)array->dtype;
    found[8] = array->flags;
}

static int as_integer(struct object *given, long long *found)
{
    if (given->type != python.integer)
        return 0;
    *found = python.integer_of(given);
    if (*found == -1 && python.fault()) {
        python.forget_fault();
        return 0;
    }
    return 1;
}

static int is_integer(struct object *given, int64_t number)
{
    long long found;
    return as_integer(given, &found) && found == number;
}

/* Numbers that a double holds without rounding. */
static int as_real(struct object *given, double *found)
{
    const long long most = 1LL << 53;
    long long whole;
    if (given->type == python.real || given->type == python.float64 || given->type == python.float32)
        *found = python.real_of(given);
    else if (as_integer(given, &whole) && -most <= whole && whole <= most)
        *found = (double)whole;
    else
        return 0;
    return 1;
}

static int is_array(const struct argument *wanted, const struct array *given)
{
    if (given->head.type != python.array || given->dtype != wanted->dtype || given->dimensions != wanted->dimensions)
        return 0;
    for (int64_t k = 0; k < wanted->dimensions; k++)
        if (given->shape[k] != wanted->shape[k])
            return 0;
    return (given->flags & wanted->flags) == wanted->flags;
}

/* Whether a call can have this argument; `scalar` is memory for a number that it stands for. */
static int takes(const struct argument *wanted, struct object *given, double *scalar, void **addresses)
{
    void *address;
    switch (wanted->kind) {
    case SAME:
        return given == wanted->value;
    case INTEGER:
        return is_integer(given, wanted->number);
    case ARRAY:
        if (!is_array(wanted, (const struct array *)given))
            return 0;
        address = ((const struct array *)given)->data;
        break;
    default:
        if (!as_real(given, scalar))
            return 0;
        if (wanted->kind == FLOAT) {
            const float rounded = (float)*scalar;
            if (__builtin_isinf(rounded) && !__builtin_isinf(*scalar))
                return 0;
            memcpy(scalar, &rounded, sizeof rounded);
        }
        address = scalar;
    }
    if (wanted->place >= 0)
        addresses[wanted->place] = address;
    return 1;
}

/* Whether what is written lies apart from all else, or all lies where it lay. */
static int lie_apart(const struct plan *plan, void *const *addresses)
{
    int is_as_before = 1, changes = 0;
    for (int64_t k = 0; k < plan->given; k++) {
        const struct argument *a = &plan->arguments[k];
        changes |= a->written != 0;
        if (a->bytes && a->before != addresses[a->place])
            is_as_before = 0;
    }
    if (is_as_before || !changes)
        return 1;
    for (int64_t k = 0; k < plan->given; k++) {
        const struct argument *a = &plan->arguments[k];
        if (!a->written || !a->bytes)
            continue;
        const char *first = addresses[a->place];
        for (int64_t m = 0; m < plan->given; m++) {
            const struct argument *b = &plan->arguments[m];
            const char *other = b->bytes ? addresses[b->place] : 0;
            if (m != k && b->bytes && first < other + b->bytes && other < first + a->bytes)
                return 0;
        }
    }
    return 1;
}

/* Put arguments in order. */
static int ordered(
    const struct plan *plan, struct object *const *given, intptr_t count, struct object *names, struct object **values)
{
    const intptr_t named = names ? python.size(names) : 0;
    if (count > plan->positional || count + named != plan->given)
        return 0;
    for (intptr_t k = 0; k < count; k++)
        values[k] = given[k];
    for (intptr_t k = 0; k < named; k++) {
        struct object *name = python.item(names, k);
        intptr_t at = count + k; /* as a rule they come in order */
        if (plan->arguments[at].name != name)
            for (at = count; at < plan->given && plan->arguments[at].name != name;)
                at++;
        if (at == plan->given)
            for (at = count; at < plan->given && python.compare(plan->arguments[at].name, name);)
                at++;
        if (at == plan->given)
            return 0;
        values[at] = given[count + k];
    }
    return 1;
}

/* A new array of zeros that begins at a cache line. */
static struct object *new_array(const struct result *result, void **addresses)
{
    struct object *room = python.call(python.zeros, result->room, 0);
    if (!room)
        return 0;
    char *data = ((struct array *)room)->data;
    const int64_t first = -(intptr_t)data & (LINE - 1);
    struct object *offset = python.from_integer(first), *words = 0, *array = 0;
    if (offset)
        words = python.pack(4, result->shape, result->dtype, room, offset);
    if (words)
        array = python.call(python.array, words, 0);
    addresses[result->place] = data + first;
    if (words)
        python.drop(words);
    if (offset)
        python.drop(offset);
    python.drop(room);
    return array;
}

static struct object *refused(void)
{
    if (python.fault())
        python.forget_fault();
    python.keep(python.refused);
    return python.refused;
}

static struct object *handed_over(const struct plan *plan, struct object **left)
{
    struct object *all = python.tuple(plan->made);
    for (int64_t k = 0; k < plan->made; k++)
        if (all)
            python.put(all, k, left[k]);
        else
            python.drop(left[k]);
    return all;
}

/* A function of Python (METH_FASTCALL | METH_KEYWORDS): what the call left, or NotImplemented before anything happens. */
struct object *call_again(struct object *self, struct object *const *given, intptr_t count, struct object *names)
{
    const struct plan *plan = (const struct plan *)(intptr_t)python.integer_of(self);
    struct object *values[plan->given + 1], *left[plan->made + 1];
    double scalars[plan->given + 1];
    if (!*plan->valid || !ordered(plan, given, count, names, values))
        return refused();
    void *addresses[plan->count];
    memcpy(addresses, plan->addresses, sizeof addresses);
    for (int64_t k = 0; k < plan->given; k++)
        if (!takes(&plan->arguments[k], values[k], &scalars[k], addresses))
            return refused();
    if (!lie_apart(plan, addresses))
        return refused();
    for (int64_t k = 0; k < plan->made; k++) {
        const struct result *result = &plan->results[k];
        left[k] = result->argument >= 0 ? values[result->argument] : new_array(result, addresses);
        if (!left[k]) {
            while (k-- > 0)
                python.drop(left[k]);
            return refused();
        }
        if (result->argument >= 0)
            python.keep(left[k]);
    }
    const struct call call = {plan->crew, plan->function, addresses, plan->integers, 0};
    void *thread = python.release();
    run_together(&call);
    python.acquire(thread);
    return handed_over(plan, left);
}

/* None, the only one, or all of a tuple, which is dropped where it is not returned. */
static struct object *only_one(struct object *all)
{
    const intptr_t count = python.size(all);
    if (count > 1)
        return all;
    struct object *only = count ? python.item(all, 0) : python.none;
    python.keep(only);
    python.drop(all);
    return only;
}

/* `Repeating._call`, a function of Python: the last call again, or another one where it is none like it. */
struct object *call_object(struct object *self, struct object *const *given, intptr_t count, struct object *names)
{
    struct object *found = python.refused, *again = python.attribute(self, python.again);
    if (!again)
        return 0;
    python.keep(found);
    if (again != python.none) {
        python.drop(found);
        found = python.call_with(again, given, (size_t)count, names);
    }
    python.drop(again);
    if (found == python.refused) {
        python.drop(found);
        struct object *other = python.attribute(self, python.other);
        if (!other)
            return 0;
        found = python.call_with(other, given, (size_t)count, names);
        python.drop(other);
    }
    return found ? only_one(found) : 0;
}
