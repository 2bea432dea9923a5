/* What the program of a processing element (PE) may use. Every emitted role includes this file and nothing else.
 *
 *   memory       load(y[i])  store(y[i], v)              local arrays, element by element; array(y) states an extent
 *   descriptors  configure  configure_input[_pairs]  configure_output[_pairs]  set_base_address  set_length
 *   SIMD         invoke_simd(fmach, destination, sources...)      start_simd(task, fmovh, destination, sources...)
 *   fabric       receive(type, queue)  send(queue, v)  send_sparse(queue, index, v)  send_end(queue)
 *   tasks        activate(task)  block(queue)  unblock(queue)  next_invocation()
 *   cost         cost(.operations = 2, .loads = 1)       scalar work of one basic block
 *   arithmetic   abs_h  exp_s  div_i16 ...  to_half  to_float  to_int16  to_int32      (arithmetic.h)
 *   the role     ROLE(name, .memory_bytes, .operands, .main, .inputs, .tasks)
 *
 * Whatever begins with pe_ or PE_ is the simulator's own, except the coordinates PE_X and PE_Y. */
#ifndef POLYLOOM_PE_H
#define POLYLOOM_PE_H

#include "arithmetic.h"
#define PE_FILE NULL
#include "pe_state.h"

/* ---- Types ----------------------------------------------------------------------------------------------------- */

enum pe_type { PE_TYPE_half = 1, PE_TYPE_float, PE_TYPE_int16_t, PE_TYPE_int32_t };

#define PE_TYPE_OF(value) \
  _Generic((value), half: PE_TYPE_half, float: PE_TYPE_float, int16_t: PE_TYPE_int16_t, int32_t: PE_TYPE_int32_t)

static inline uint32_t pe_bits_h(half v) { uint16_t b; __builtin_memcpy(&b, &v, 2); return b; }
static inline uint32_t pe_bits_s(float v) { uint32_t b; __builtin_memcpy(&b, &v, 4); return b; }
static inline uint32_t pe_bits_i16(int16_t v) { return (uint16_t)v; }
static inline uint32_t pe_bits_i32(int32_t v) { return (uint32_t)v; }
static inline half pe_half(uint32_t bits) { uint16_t b = (uint16_t)bits; half v; __builtin_memcpy(&v, &b, 2); return v; }
static inline float pe_float(uint32_t bits) { float v; __builtin_memcpy(&v, &bits, 4); return v; }
static inline int16_t pe_int16(uint32_t bits) { return (int16_t)(uint16_t)bits; }
static inline int32_t pe_int32(uint32_t bits) { return (int32_t)bits; }

#define PE_BITS(value) \
  _Generic((value), half: pe_bits_h, float: pe_bits_s, int16_t: pe_bits_i16, int32_t: pe_bits_i32)(value)
#define PE_FROM_BITS(type, bits) \
  _Generic((type)0, half: pe_half, float: pe_float, int16_t: pe_int16, int32_t: pe_int32)(bits)

/* ---- Scalar code: memory and cost -------------------------------------------------------------------------------- */

/* The value of an element of a local array; an element that nothing was written to is an error. */
#define load(element) \
  __extension__({ \
    PE_HERE("load(" #element ")"); \
    (void)PE_TYPE_OF(element); \
    __auto_type pe_value = (element); \
    pe_check_load(&(element), sizeof pe_value, &pe_here); \
    pe_value; \
  })

/* Writes an element of a local array. */
#define store(element, value) \
  __extension__({ \
    PE_HERE("store(" #element ")"); \
    (void)PE_TYPE_OF(element); \
    pe_mark_stored(&(element), sizeof(element), &pe_here); \
    element = (value); /* without parentheses: clang checks the last index only of a bare one */ \
  })

/* What the scalar work of a basic block costs: cost(.operations=, .loads=, .stores=, .multiplications=, .iterations=,
 * .branches=), each a count. SIMD, fabric and task operations cost what the machine says by themselves. */
#define cost(...) (PE_LINE(), pe_cost((struct pe_work){__VA_ARGS__}))

/* ---- Operand descriptors ------------------------------------------------------------------------------------------ */

typedef struct { uint8_t number; } operand; /* numbered from 0 in a role */

void pe_array(const void *address, size_t bytes, const char *name);
void pe_configure(operand o, size_t dims, const int32_t *sizes, size_t strides_dims, const int32_t *strides,
                  const struct pe_site *site);
void pe_configure_fabric(operand o, bool output, bool pairs, int queue, int64_t elements, const struct pe_site *site);
void pe_set_length(operand o, int64_t length, const struct pe_site *site);
void pe_set_base_address(operand o, const void *address, enum pe_type type, const struct pe_site *site);

#define PE_INTEGERS(...) sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (const int32_t[]){__VA_ARGS__}
#define SIZES(...) PE_INTEGERS(__VA_ARGS__)
#define STRIDES(...) PE_INTEGERS(__VA_ARGS__)

/* Says which bytes the array has, once, in main: SIMD operands whose base lies in it must stay in it. */
#define array(name) pe_array(&(name), sizeof(name), #name)
/* Up to four dimensions, outermost first; strides in elements. */
#define configure(o, sizes, strides) PE_DO("configure(" #o ")", pe_configure(o, sizes, strides, &pe_here))
/* Another length for an operand of one dimension, where the machine can set it alone. */
#define set_length(o, length) PE_DO("set_length(" #o ")", pe_set_length(o, length, &pe_here))
/* A fabric operand: so many elements from, or to, a queue. */
#define configure_input(o, queue, elements) \
  PE_DO("configure_input(" #o ")", pe_configure_fabric(o, false, false, queue, elements, &pe_here))
#define configure_output(o, queue, elements) \
  PE_DO("configure_output(" #o ")", pe_configure_fabric(o, true, false, queue, elements, &pe_here))
/* The same for elements of 16 bits, two in a wavelet, the first in the low half; an odd one at the end has one of its own. */
#define configure_input_pairs(o, queue, elements) \
  PE_DO("configure_input_pairs(" #o ")", pe_configure_fabric(o, false, true, queue, elements, &pe_here))
#define configure_output_pairs(o, queue, elements) \
  PE_DO("configure_output_pairs(" #o ")", pe_configure_fabric(o, true, true, queue, elements, &pe_here))
#define set_base_address(o, address) \
  PE_DO("set_base_address(" #o ", " #address ")", \
        pe_set_base_address(o, address, PE_TYPE_OF(*(address)), &pe_here))

/* ---- SIMD instructions --------------------------------------------------------------------------------------------- */

enum pe_instruction {
#define SIMD_INSTRUCTION1(name, ...) PE_INSTRUCTION_##name,
#define SIMD_INSTRUCTION2(name, ...) PE_INSTRUCTION_##name,
#define SIMD_INSTRUCTION3(name, ...) PE_INSTRUCTION_##name,
#include "instructions.inc"
#undef SIMD_INSTRUCTION1
#undef SIMD_INSTRUCTION2
#undef SIMD_INSTRUCTION3
  PE_INSTRUCTIONS
};

enum pe_sources {
  PE_NO_SOURCES = 0,
#define SIMD_INSTRUCTION1(name, ...) PE_SOURCES_##name = 1,
#define SIMD_INSTRUCTION2(name, ...) PE_SOURCES_##name = 2,
#define SIMD_INSTRUCTION3(name, ...) PE_SOURCES_##name = 3,
#include "instructions.inc"
#undef SIMD_INSTRUCTION1
#undef SIMD_INSTRUCTION2
#undef SIMD_INSTRUCTION3
};

struct pe_source { /* an operand, or a scalar with its type */
  uint8_t type;    /* 0: an operand */
  uint8_t number;
  uint32_t bits;
};

static inline struct pe_source pe_source_operand(operand o) { return (struct pe_source){0, o.number, 0}; }
static inline struct pe_source pe_source_h(half v) { return (struct pe_source){PE_TYPE_half, 0, pe_bits_h(v)}; }
static inline struct pe_source pe_source_s(float v) { return (struct pe_source){PE_TYPE_float, 0, pe_bits_s(v)}; }
static inline struct pe_source pe_source_i16(int16_t v) { return (struct pe_source){PE_TYPE_int16_t, 0, pe_bits_i16(v)}; }
static inline struct pe_source pe_source_i32(int32_t v) { return (struct pe_source){PE_TYPE_int32_t, 0, pe_bits_i32(v)}; }

void pe_invoke_simd(enum pe_instruction name, operand destination, const struct pe_source *sources,
                    const struct pe_site *site);
void pe_start_simd(const char *task, enum pe_instruction name, operand destination, const struct pe_source *sources,
                   const struct pe_site *site);

#define PE_SOURCE(s) \
  _Generic((s), operand: pe_source_operand, half: pe_source_h, float: pe_source_s, int16_t: pe_source_i16, \
           int32_t: pe_source_i32)(s)
#define PE_SOURCE1(a) PE_SOURCE(a)
#define PE_SOURCE2(a, b) PE_SOURCE(a), PE_SOURCE(b)
#define PE_SOURCE3(a, b, c) PE_SOURCE(a), PE_SOURCE(b), PE_SOURCE(c)
#define PE_FOURTH(a, b, c, d, ...) d
#define PE_SOURCE_LIST(...) PE_FOURTH(__VA_ARGS__, PE_SOURCE3, PE_SOURCE2, PE_SOURCE1, )(__VA_ARGS__)
#define PE_SOURCES(name, ...) \
  (const struct pe_source[]) { PE_SOURCE_LIST(__VA_ARGS__) }
#define PE_COUNTS_AGREE(name, ...) \
  _Static_assert(sizeof(PE_SOURCES(name, __VA_ARGS__)) / sizeof(struct pe_source) == PE_SOURCES_##name, \
                 #name " has another number of sources")

/* One SIMD instruction: destination, then the sources in the order of its body; a source is an operand or a scalar.
 * The main thread waits until it is done; operands of the fabric may stall it (then the task must be BLOCKING). */
#define invoke_simd(name, destination, ...) \
  __extension__({ \
    PE_HERE(#name); \
    PE_COUNTS_AGREE(name, __VA_ARGS__); \
    pe_invoke_simd(PE_INSTRUCTION_##name, destination, PE_SOURCES(name, __VA_ARGS__), &pe_here); \
  })
/* The same beside the main thread, with at least one operand of the fabric; activates the task when it is complete. */
#define start_simd(task, name, destination, ...) \
  __extension__({ \
    PE_HERE(#name); \
    PE_COUNTS_AGREE(name, __VA_ARGS__); \
    pe_start_simd(#task, PE_INSTRUCTION_##name, destination, PE_SOURCES(name, __VA_ARGS__), &pe_here); \
  })

/* ---- Queues and tasks ----------------------------------------------------------------------------------------------- */

uint32_t pe_receive(int queue, enum pe_type type, const struct pe_site *site);
void pe_send(int queue, enum pe_type type, uint32_t bits, const struct pe_site *site);
void pe_send_sparse(int queue, uint32_t index, enum pe_type type, uint32_t bits, const struct pe_site *site);
void pe_send_end(int queue, const struct pe_site *site);
void pe_turn_switches(int queue, int count, const struct pe_site *site);
void pe_activate(const char *task, const struct pe_site *site);
void pe_set_blocked(int queue, bool blocked, const struct pe_site *site);
bool pe_next_invocation(void);

/* The next element of a queue; waits for it. BLOCKING tasks only. */
#define receive(type, queue) \
  PE_DO("receive(" #queue ")", PE_FROM_BITS(type, pe_receive(queue, PE_TYPE_OF((type)0), &pe_here)))
/* Sends one element, 16-bit types in the low half of the wavelet; waits for room. BLOCKING tasks only. */
#define send(queue, value) \
  __extension__({ \
    PE_HERE("send(" #queue ")"); \
    __auto_type pe_value = (value); \
    pe_send(queue, PE_TYPE_OF(pe_value), PE_BITS(pe_value), &pe_here); \
  })
/* Sends an (index, value) pair, the value of a 16-bit type. */
#define send_sparse(queue, index, value) \
  __extension__({ \
    PE_HERE("send_sparse(" #queue ")"); \
    __auto_type pe_value = (value); \
    pe_send_sparse(queue, (uint32_t)(index), PE_TYPE_OF(pe_value), PE_BITS(pe_value), &pe_here); \
  })
/* Sends an end of chunk: a control wavelet. */
#define send_end(queue) PE_DO("send_end(" #queue ")", pe_send_end(queue, &pe_here))
/* Sends a control wavelet that turns so many switches of its color: those of the first routers on its way that have one. */
#define turn_switches(queue, count) PE_DO("turn_switches(" #queue ")", pe_turn_switches(queue, count, &pe_here))
/* Asks for a task of the role; asking again before it has begun changes nothing. */
#define activate(task) PE_DO("activate(" #task ")", pe_activate(#task, &pe_here))
/* A queue starts blocked: it fills up and holds back the fabric. While it is not, its data and control tasks run. */
#define block(queue) PE_DO("block(" #queue ")", pe_set_blocked(queue, true, &pe_here))
#define unblock(queue) PE_DO("unblock(" #queue ")", pe_set_blocked(queue, false, &pe_here))
/* Whether another invocation is to come; if so, it counts as begun. The first one has begun by itself. */
#define next_invocation() pe_next_invocation()

/* ---- The role -------------------------------------------------------------------------------------------------------- */

enum { PE_MOST_QUEUES = 16, PE_MOST_TASKS = 32 };
enum pe_form { PE_NO_DATA_TASK, PE_SPARSE_HALF, PE_SPARSE_INT16, PE_DENSE_HALF, PE_DENSE_FLOAT, PE_DENSE_INT16,
               PE_DENSE_INT32 };

struct pe_input { /* what happens to the wavelets of an input queue */
  enum pe_form form;
  const char *name;
  union {
    void (*sparse_half)(uint16_t index, half data);
    void (*sparse_int16)(uint16_t index, int16_t data);
    void (*dense_half)(half data);
    void (*dense_float)(float data);
    void (*dense_int16)(int16_t data);
    void (*dense_int32)(int32_t data);
  } run;
  void (*end)(void); /* the control task: one end of chunk */
  bool blocking;     /* whether both may wait for the fabric, as a BLOCKING task may */
};

struct pe_task {
  const char *name;
  void (*run)(void);
  bool blocking;
};

struct role {
  const char *name;
  size_t memory_bytes;
  int operands;
  void (*main)(void); /* runs once, at cycle 0 */
  struct pe_input inputs[PE_MOST_QUEUES];
  struct pe_task tasks[PE_MOST_TASKS];
};

#define SPARSE_HALF(task) .form = PE_SPARSE_HALF, .name = #task, .run.sparse_half = task
#define SPARSE_INT16(task) .form = PE_SPARSE_INT16, .name = #task, .run.sparse_int16 = task
#define DENSE_HALF(task) .form = PE_DENSE_HALF, .name = #task, .run.dense_half = task
#define DENSE_FLOAT(task) .form = PE_DENSE_FLOAT, .name = #task, .run.dense_float = task
#define DENSE_INT16(task) .form = PE_DENSE_INT16, .name = #task, .run.dense_int16 = task
#define DENSE_INT32(task) .form = PE_DENSE_INT32, .name = #task, .run.dense_int32 = task
#define LOCAL(task) {#task, task, false}    /* runs without waiting */
#define BLOCKING(task) {#task, task, true}  /* may receive, send and run SIMD instructions on the fabric */

#define ROLE(role_name, ...) \
  extern const struct role role_name; \
  const struct role role_name = {.name = #role_name, __VA_ARGS__};

#ifdef PE_COUNTED
/* A branch of emitted code; whether another invocation is to come is the simulator's question, and costs nothing. */
#define if(...) if (__extension__({ PE_COUNT(branches); (__VA_ARGS__); }))
#undef next_invocation
#define next_invocation() (self->done.branches--, pe_next_invocation())
#endif

#endif
