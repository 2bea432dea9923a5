/* The state of one simulation, and who reads and writes it.
 *
 * A wavelet moves through rings: a router's input buffer for one color (a route), a PE's input queue, or an external
 * sink. Every slot of a ring carries a cycle: from which a full slot may be taken, or at which an empty one was freed.
 * Usable are, at cycle t, a full slot with time <= t and an empty one with time < t. Since every push lies in the
 * future and every pop becomes visible in the next cycle, the nodes of one cycle may be visited in any order, and by
 * several threads at once (team.c). */
#ifndef POLYLOOM_FABRIC_H
#define POLYLOOM_FABRIC_H

#include "pe.h"
#ifdef PE_COUNTED
#undef if /* the simulator's own branches are not counted */
#endif

enum { SIDE_NORTH, SIDE_SOUTH, SIDE_EAST, SIDE_WEST, SIDE_RAMP, SIDES };
enum { MOST_COLORS = 32, MOST_STREAMS = 8, MOST_DIMENSIONS = 4, MOST_SOURCES = 3 };
enum { NO_ROUTE = 0xff };
#define NEVER INT64_MAX

struct machine { /* what Python's Machine says; the layout of both is the same */
  struct pe_costs scalar;
  int32_t simd_launch, configure, set_base_address, set_length, data_task_dispatch, local_task_activate, send, receive;
  int32_t hop_latency, ramp_latency, colors, router_buffer, microthreads, microthread_wake, same_bank_cycles,
      input_queues, output_queues;
  int32_t input_lengths[PE_MOST_QUEUES], output_lengths[PE_MOST_QUEUES];
  int32_t memory_bytes; /* what a role may have */
  int32_t widths[256];  /* of the SIMD instructions, in their order in the table */
};

/* ---- Wavelets in rings ---- */

enum { TAG_PAIR = 0x08, TAG_SPARSE = 0x10, TAG_CONTROL = 0x20, TAG_EXTERNAL = 0x40, TAG_TURN = 0x80 };
/* else the enum pe_type of a dense element; with TAG_PAIR, of two of them, the first in the low half; with TAG_TURN the
   payload says how many switches the wavelet still turns */

struct slot {
  int64_t time;
  uint32_t payload;
  uint8_t full, tag;
};

enum end_kind { END_NONE, END_ROUTER, END_PE, END_EDGE };

struct ring {
  struct slot *slots;
  uint32_t producer, consumer; /* node (or edge) numbers */
  uint8_t capacity, head, tail;
  uint8_t producer_waits;      /* it found the ring full: wake it after the next pop */
  uint8_t producer_kind, consumer_kind, consumer_index; /* index: the route of the node, the queue of the PE */
  uint8_t color;
  uint8_t remote;    /* producer and consumer belong to different parts: then the slots are the producer's, */
  uint8_t announced; /* and the consumer counts the full ones that it has been told of */
};

static inline struct slot *ring_head(struct ring *r) { return &r->slots[r->head]; }
static inline struct slot *ring_tail(struct ring *r) { return &r->slots[r->tail]; }
static inline bool ring_filled(const struct ring *r) { return r->remote ? r->announced : r->slots[r->head].full; }

/* ---- Routers ---- */

struct filter { /* of each ``period`` wavelets, ``keep`` after the first ``skip`` reach the PE; ``next``: which comes now */
  uint32_t skip, keep, period, next;
};

struct target { /* one way out of a route: a ring, or a sink */
  struct ring *ring;
  struct filter *filter; /* of a way to the PE; NULL: none */
  uint32_t sink; /* its number, from 1 on; 0: none */
  uint8_t side;
};

struct route { /* a line of the cache */
  _Alignas(64) struct ring ring;
  struct target *targets;
  uint8_t target_count, color, from, to, checked;
  uint8_t other;  /* of a switch: the number of the route for its other position, from 1 on; 0: no switch */
  uint8_t closed; /* the switch is in the other position */
};

struct node { /* a router, and the PE behind its ramp if that has a program; a line of the cache */
  _Alignas(64) struct route *routes;
  struct core *core;
  int64_t router_due;
  uint32_t occupied; /* routes with a wavelet in their ring */
  uint8_t route_count, first; /* first: whose turn it is */
  bool traced;                /* where a trace is of chosen nodes only */
  uint32_t link_use[SIDES];
};

/* ---- PEs ---- */

enum operand_kind { OPERAND_UNSET, OPERAND_MEMORY, OPERAND_INPUT, OPERAND_OUTPUT };

struct descriptor { /* fits into a line of the processor's cache */
  uint8_t kind : 7, pairs : 1; /* pairs: a wavelet holds two elements of 16 bits */
  uint8_t type, dims, queue;
  uint32_t elements;
  int32_t base;        /* byte offset in memory; -1: not set */
  int32_t low, high;   /* first and one past the last element, relative to the base */
  uint32_t array_low, array_high; /* bytes that the operand must stay in */
  uint32_t sizes[MOST_DIMENSIONS];
  int32_t strides[MOST_DIMENSIONS]; /* in elements; outermost first, contiguous dimensions joined */
  int32_t only_stride; /* of an operand that was configured with one dimension; else INT32_MIN */
};

struct cursor { /* a place in the nest of a memory operand */
  const struct descriptor *nest;
  int64_t offset; /* bytes in memory */
  uint32_t at[MOST_DIMENSIONS];
};

struct instruction {
  const char *name;
  void (*run)(unsigned char *to, long to_step, unsigned char *const from[], const long from_step[], long n);
  uint8_t sources, to_type, from_type[MOST_SOURCES];
};

struct stream { /* an instruction with operands of the fabric, in execution element by element */
  const struct instruction *instruction;
  const struct pe_site *site;
  int64_t from;          /* the next element, or the end, comes at this cycle at the earliest */
  int64_t began;
  uint32_t left;
  int32_t input, output; /* queues; -1: none */
  bool pairs;            /* of these: a wavelet holds two elements */
  bool half;             /* the first element of a pair was executed, the second was not */
  uint32_t held_input, held_output; /* what the second one needs: its element, and the first one's result */
  uint32_t issued;       /* cycles in which the engine worked for it */
  int32_t task;          /* activated at the end; -1: the main thread waits for it */
  int32_t lane;          /* its number among the microthreads of the PE */
  uint32_t scalars[MOST_SOURCES];
  uint8_t source_kind[MOST_SOURCES]; /* enum operand_kind; OPERAND_UNSET: a scalar */
  struct descriptor to_nest, source_nest[MOST_SOURCES]; /* copies: the originals may be configured anew meanwhile */
  struct cursor to, source[MOST_SOURCES];
  struct stream *next_free;
};

struct queue {
  struct ring ring;
  uint8_t stream_reads; /* a microthread owns it */
};

enum core_state { CORE_FREE, CORE_SLEEPS, CORE_WAITS_INPUT, CORE_WAITS_OUTPUT, CORE_WAITS_STREAM, CORE_FAILED };

struct job { /* a task in execution */
  void (*run)(void);
  const struct pe_input *input; /* or a data task of this queue, with its wavelet */
  uint32_t payload;
  const char *name;
  bool blocking;
};

struct core {
  struct pe pe; /* first: what emitted code sees */
  struct fabric *fabric;
  struct node *node;
  const struct role *role;
  int64_t core_due, engine_due, engine_used; /* engine_used: the last cycle in which a microthread issued */
  int64_t busy, began, waited, waits_since;
  int64_t charged_until, charged_waits; /* what is counted for lines, by profile.c */
  uint32_t number;      /* of its node */
  uint32_t activated;   /* tasks */
  uint32_t unblocked;   /* queues */
  uint32_t at_line;     /* its number in the profile */
  uint8_t state, started, next_queue, next_stream, stream_count, waits_queue;
  int32_t invocations;
  const struct pe_site *waits_site;
  struct coroutine *coroutine; /* of the task in execution */
  struct job job;
  struct queue *inputs;  /* input_queues of them; capacity 0: not bound */
  struct ring **outputs;
  struct descriptor *descriptors;
  struct stream *streams[MOST_STREAMS + 1];
};

/* ---- Ports ---- */

struct source {
  int32_t side, position, color;
  struct ring *ring;
  const uint32_t *payload;
  const uint8_t *control;
  int64_t count, next;
};

struct sink {
  int32_t side, position, color;
  int64_t expected, count, capacity;
  uint32_t *payload;
  uint8_t *control;
  int64_t *cycle;
};

struct edge { /* one link into the rectangle, shared by its sources */
  int64_t due;
  struct source **sources;
  int32_t count, first;
  uint32_t node; /* that it leads to */
};

/* ---- Results ---- */

enum trace_kind { TRACE_TASK, TRACE_SIMD, TRACE_MICROTHREAD, TRACE_LINK, TRACE_WAIT };

struct trace_event {
  int64_t start;
  int64_t duration;
  uint32_t pe;
  uint16_t kind;
  uint16_t lane; /* microthread or side */
  uint32_t name;
  uint32_t line; /* of the emitted C; 0: none */
};

struct line_use { /* of all PEs of a role together, in cycles; of a CSL program of all PEs */
  const struct role *role;
  const char *task; /* of line 0: what happened in it before its first statement; else, in CSL, the line's file */
  int64_t times, worked, waited, beside; /* beside: of microthreads that were started there */
  int32_t line;
};

enum activity { COMPUTES, WAITS, BESIDE, SENDS, ACTIVITIES }; /* BESIDE: microthreads; SENDS: wavelets to neighbours */

struct profile {
  struct line_use *lines;
  uint32_t *places; /* a table by hashes: numbers of lines, from 1 on */
  uint32_t line_count, place_count;
  int32_t columns, rows, side; /* of cells; a cell has 2^side PEs each way */
  int32_t length;              /* a frame has 2^length cycles */
  int32_t *cycles;             /* [frame][activity][cell] */
};

struct trace {
  struct trace_event *events;
  size_t count, capacity;
  const char **names;
  uint32_t name_count, name_capacity;
  bool of_chosen; /* nodes only */
  struct profile profile;
};

struct end_name { /* what messages call a control task */
  const struct pe_input *input;
  struct end_name *next;
  char text[96];
};

struct failure {
  int64_t cycle;
  int32_t x, y; /* -1: no PE */
  int32_t line;
  int32_t present;
  char kind[32];
  char message[512];
  char task[96];
  char file[160];
  char details[8192]; /* lines */
};

struct statistics {
  int64_t cycle, events, wavelets, hops, simd_operations, simd_instructions, scalar_operations, max_link_use;
};

struct fabric { /* a part of the rectangle, the work of one thread; the first part stands for all of them */
  struct machine machine;
  int32_t width, height, invocations, traces;
  int64_t now, max_cycles, last_activity;
  uint32_t node_count, visiting;
  struct node *nodes;
  struct edge *edges; /* north, south (width each), east, west (height each); made when the run starts */
  uint32_t edge_count;
  struct source **sources;
  struct sink **sinks;
  uint32_t source_count, sink_count;
  struct wheel *wheel;
  struct arena *arena;
  struct coroutines *coroutines;
  struct trace *trace;
  struct array_table *arrays;
  struct stream *free_streams;
  struct end_name *end_names;
  struct statistics statistics;
  struct failure failure;
  uint32_t failure_node;
  struct team *team; /* NULL: there is one part only */
  uint32_t part;
  int32_t threads;
  bool linked;
  bool backwards; /* visits the nodes of a cycle in the opposite order: a test that nothing depends on it */
};

static inline struct core *this_core(void) { return (struct core *)self; }
static inline int node_x(const struct fabric *f, uint32_t n) { return (int)(n % (uint32_t)f->width); }
static inline int node_y(const struct fabric *f, uint32_t n) { return (int)(n / (uint32_t)f->width); }
static inline int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* events.c */
struct wheel *wheel_create(void);
void wheel_destroy(struct wheel *w);
void wake_router(struct fabric *f, uint32_t node, int64_t at);
void wake_core(struct core *c, int64_t at);
void wake_engine(struct core *c, int64_t at);
void wake_edge(struct fabric *f, uint32_t edge, int64_t at);

int64_t next_cycle(struct fabric *f);               /* with an event; NEVER if there is none */
bool visit_cycle(struct fabric *f, int64_t at); /* does what is due; whether anything was noted for that cycle */

/* team.c: the parts of a fabric, each with its thread */
void team_form(struct fabric *f, int32_t threads); /* after the rings are linked */
struct fabric *part_of(struct fabric *f, uint32_t node);
bool team_step(struct fabric *f); /* one cycle of the part; false: the simulation has ended */
void team_begin(struct fabric *f); /* starts the other threads, if they have not started */
void team_join(struct fabric *f); /* waits for them; failures, statistics and time are in the first part then */
void team_destroy(struct fabric *f);
int64_t team_events(const struct fabric *f);
void mail_push(struct fabric *f, struct ring *r, int64_t at);
void mail_pop(struct fabric *f, struct ring *r, uint8_t slot, int64_t at);

/* memory.c */
struct arena *arena_create(void);
void arena_destroy(struct arena *a);
void *arena_take(struct arena *a, size_t bytes); /* zeroed; lives as long as the fabric */

/* rings.c: pushing and popping, with the events that follow */
void ring_push(struct fabric *f, struct ring *r, int64_t at, uint32_t payload, uint8_t tag);
void ring_pop(struct fabric *f, struct ring *r, int64_t at);
void ring_announce(struct fabric *f, struct ring *r, int64_t at);            /* a push of another part */
void ring_freed(struct fabric *f, struct ring *r, uint8_t slot, int64_t at); /* a pop of another part */

/* lifetime.c */
void fabric_begin(struct fabric *f, const struct machine *machine, int32_t width, int32_t height, int32_t traces,
                  int64_t max_cycles);
void fabric_end(struct fabric *f);

/* router.c */
void router_step(struct fabric *f, uint32_t number, int64_t now);

/* ports.c */
void edge_step(struct fabric *f, uint32_t edge, int64_t now);
void sink_take(struct sink *s, uint32_t payload, bool control, int64_t cycle);

/* coroutine.c */
struct coroutines *coroutines_create(void);
void coroutines_destroy(struct coroutines *all);
void coroutine_start(struct core *c);  /* runs the core's job until it ends or yields */
void coroutine_resume(struct core *c);
void coroutine_yield(struct core *c);
void prefetch_stack(const struct coroutine *k);
_Noreturn void coroutine_abandon(struct core *c);

/* tasks.c */
void core_step(struct core *c, int64_t now);

/* commands.c */
int task_number(struct core *c, const char *name, const struct pe_site *site);
void sleep_until_clock(struct core *c);
struct slot *await_element(struct core *c, int queue, const struct pe_site *site);
struct ring *await_room(struct core *c, int queue, const struct pe_site *site);
struct ring *output_ring(struct core *c, int queue, const struct pe_site *site);
void check_readable(struct core *c, int queue, const struct pe_site *site);
void require_blocking(struct core *c, const struct pe_site *site);
uint32_t wavelet_data(struct core *c, const struct slot *s, uint8_t tag, int queue, const struct pe_site *site);
void wait_here(struct core *c, enum core_state state, int queue, const struct pe_site *site);

/* instructions.c */
extern const struct instruction instructions[];
extern const int64_t instruction_count;

static inline uint32_t type_bytes(uint8_t type) { return type == PE_TYPE_half || type == PE_TYPE_int16_t ? 2 : 4; }

/* cursors.c */
void cursor_start(struct cursor *k, const struct descriptor *d);
void cursor_advance(struct cursor *k, uint32_t n); /* at most to the end of the row */
long cursor_stride(const struct cursor *k);
uint32_t cursor_row_left(const struct cursor *k);
int stride_limit(long stride, long words); /* elements a cycle; words: 16-bit words in an element */

/* descriptors.c */
struct descriptor *descriptor_of(struct core *c, operand o, const struct pe_site *site);
void check_operand(struct core *c, const struct instruction *ins, const struct descriptor *d, uint8_t type,
                   uint32_t elements, const struct pe_site *site);
void check_scalar(struct core *c, const struct instruction *ins, uint8_t given, uint8_t type, const struct pe_site *site);
struct array_table *array_table_create(void);

/* streams.c */
void run_with_fabric(struct core *c, enum pe_instruction name, operand to, const struct pe_source *sources,
                     const struct pe_site *site);
void engine_step(struct core *c, int64_t now);

/* setup.c */
void lay_out(struct fabric *f);
struct route *route_of(struct node *n, int color);
struct route *route_from(struct node *n, int color, int side);

/* links.c */
void link_rings(struct fabric *f, int32_t threads);

/* failure.c: the first failure counts: of the earliest cycle, in it that of the first node */
void fail_node(struct fabric *f, uint32_t node, const char *kind, const struct pe_site *site, const char *format, ...);
_Noreturn void fail_task(struct core *c, const char *kind, const struct pe_site *site, const char *format, ...);
void fail_setup(struct fabric *f, int x, int y, const char *kind, const char *format, ...);
void report_end(struct fabric *f); /* what is left when no event is: a deadlock, or data in the fabric */
const char *color_text(int color);
const char *tag_text(uint8_t tag);

/* trace.c */
struct trace *trace_create(void);
void trace_destroy(struct trace *t);
void trace_append(struct fabric *f, struct trace *from);
void trace_add(struct fabric *f, enum trace_kind kind, uint32_t node, int lane, const char *name, int64_t start,
               int64_t end);
void trace_add_at(struct fabric *f, enum trace_kind kind, uint32_t node, int lane, const struct pe_site *site,
                  const char *name, int64_t start, int64_t end);

/* profile.c, of simulations that are traced */
void charge_line(struct core *c);
void enter_line(struct core *c, int32_t line, const char *file);
void charge_microthread(struct core *c, const struct pe_site *site);
void add_activity(struct fabric *f, enum activity kind, uint32_t node, int64_t start, int64_t end, int32_t sign);
void profile_append(struct fabric *f, struct profile *from);
void profile_free(struct profile *p);

#endif
