/* The state of a simulation of CSL programs: what it has beyond the fabric of layers (fabric.h).
 *
 * Events, rings, coroutines, traces, failures and the cost of SIMD instructions are those of fabric.h; a node's router has
 * one ring for each side and color that wavelets have come from, and one for each output queue of its PE. */
#ifndef POLYLOOM_CSL_FABRIC_H
#define POLYLOOM_CSL_FABRIC_H

#include "csl.h"
#include "fabric.h"

enum { SIDE_HOST = SIDES, INPUT_SIDES }; /* the host beside the ramp: what memcpy streams */
enum { TAG_COLOR = 0x1f };               /* of a slot's tag: the color; TAG_CONTROL as everywhere */
enum { CSL_QUEUES = 8, CSL_COLORS = 24, CSL_IDS = 64, CSL_POSITIONS = 4, CSL_STREAMS = 17, TEARDOWN_TASK = 29 };
enum { NO_COLOR = 0xff };
enum filter_kind { FILTER_NONE, FILTER_RANGE, FILTER_COUNTER };
enum pop_mode { POP_NONE, POP_ALWAYS, POP_ON_ADVANCE = 3 };

/* ---- Routers ---- */

struct csl_filter { /* what of a color reaches the PE */
  uint8_t kind, count_data, count_control;
  uint32_t counter, most, limit; /* passes while counter <= most; counts up to limit, then from 0 */
  uint32_t low, high;            /* range: of the index, the high half of the payload */
};

struct csl_route { /* the configuration of a color in a router; sets of sides as bits 1 << SIDE_... */
  uint8_t configured, teardown, ring_mode, pop_mode, swap_x, swap_y;
  uint8_t position;
  uint8_t rx[CSL_POSITIONS], tx[CSL_POSITIONS]; /* both 0: the position does not exist */
  bool has_fields;
  uint8_t field[CSL_POSITIONS]; /* of the switch register as it was last written, if .has_fields */
  struct csl_filter filter;
};

struct csl_router {
  struct ring *in[INPUT_SIDES][CSL_COLORS]; /* [SIDE_RAMP]: output queues by number */
  uint32_t waiting[INPUT_SIDES];            /* which of them hold wavelets */
  struct csl_route *routes;                 /* [CSL_COLORS] */
  uint32_t host_sinks;                      /* colors that leave for the host */
  int32_t *sinks;                           /* [INPUT_SIDES][CSL_COLORS], -1: none; NULL: none at all */
  uint8_t first;
};

/* ---- PEs ---- */

struct csl_dsr {
  csl_dsd value;
  csl_options options;
  bool loaded, save_address;
};

struct csl_fifo_state { uint32_t head, count; };

enum csl_place { PLACE_SCALAR, PLACE_MEMORY, PLACE_INPUT, PLACE_OUTPUT, PLACE_FIFO };

struct csl_place_of { /* an operand in execution */
  uint8_t place, queue, color, control, pack, held_count;
  uint8_t bytes;
  uint32_t scalar, held;     /* held: the other half of a packed wavelet */
  struct descriptor nest;
  struct cursor cursor;
  struct csl_dsr *register_; /* whose address is kept */
  int64_t end;               /* byte address after the last element, for it */
};

struct csl_stream {
  const struct instruction *instruction;
  const struct pe_site *site;
  int64_t from, began;
  uint32_t left;
  bool endless, main; /* main: the main thread waits for it */
  bool done;
  uint8_t lane, priority, activate, unblock;
  uint8_t on_control, on_control_id;
  int8_t input; /* which source is the fabric; -1: none */
  uint32_t carry;
  struct csl_place_of to, source[MOST_SOURCES];
  struct csl_stream *next_free;
};

struct csl_call { /* a command of the host */
  const struct csl_function *function;
  struct csl_call *next;
  uint32_t words[16];
};

struct csl_core {
  struct core core; /* first */
  const struct csl_program *program;
  void *state;
  struct csl_router *router;
  const struct csl_task *data[32], *local[32], *control[CSL_IDS];
  uint64_t blocked, low_priority;
  uint32_t activated;
  uint8_t input_color[CSL_QUEUES], output_color[CSL_QUEUES];
  struct ring *of_color[CSL_COLORS]; /* wse2: where wavelets of a color without an input queue land */
  struct ring *inputs[CSL_QUEUES];
  struct ring *outputs[CSL_QUEUES];
  uint32_t queue_reads; /* input queues that a stream reads */
  struct csl_stream *streams[CSL_STREAMS];
  int stream_count, next_stream, next_ring, next_local;
  bool local_ran; /* the last task was a local one */
  struct csl_dsr registers[3][CSL_DSRS];
  struct csl_fifo_state *fifos;
  uint32_t teardown, flush_in, flush_out, flushed_in, flushed_out; /* pending; asked for */
  struct csl_call *calls, **last_call;
  bool command_runs, timestamp_on;
  int64_t timestamp_from;
  const struct csl_task *task; /* in execution, with its wavelet */
  const struct csl_call *call;
  uint32_t wavelet;
  uint8_t waits_fifo;
  struct csl_stream *waits_stream;
  char print[256];
  int printed;
};

/* ---- The host's ends ---- */

struct csl_source { /* an edge: wavelets that wait outside */
  struct ring *ring;
  uint32_t node;
  uint8_t side, color;
  uint32_t *words;
  uint8_t *control;
  int64_t count, next, capacity;
};

struct csl_sink {
  uint32_t node;
  uint8_t side, color;
  uint32_t *words;
  uint8_t *control;
  int64_t *cycle;
  int64_t count, capacity;
};

enum goal_kind { GOAL_COMMANDS, GOAL_INJECTED, GOAL_COLLECTED };
struct csl_goal { int32_t kind, node_or_index; int64_t count; };

struct csl_line { int64_t cycle; int32_t x, y; char text[256]; };

struct csl_fabric {
  struct fabric fabric; /* first */
  int32_t architecture; /* 2 or 3 */
  int32_t registers;    /* of a DSR file */
  bool loose;           /* DSDs may leave their variable, as on the machine, but not the PE's memory */
  struct csl_router *routers;
  struct csl_source *sources;
  struct csl_sink *sinks;
  int32_t source_count, sink_count;
  struct csl_stream *free_streams;
  struct csl_goal *goals;
  int32_t goal_count, goal_next;
  bool goals_changed, started;
  struct csl_line *lines;
  int64_t line_count, line_capacity;
};

static inline struct csl_core *this_csl(void) { return (struct csl_core *)self; }
static inline struct csl_fabric *csl_of(struct fabric *f) { return (struct csl_fabric *)f; }
static inline struct csl_core *csl_core_at(struct fabric *f, uint32_t node) { return (struct csl_core *)f->nodes[node].core; }
static inline bool is_wse3(struct csl_core *c) { return csl_of(c->core.fabric)->architecture == 3; }
/* The id that gates what comes by a queue. */
static inline int id_of_queue(struct csl_core *c, int queue) {
  return is_wse3(c) ? queue : c->input_color[queue];
}

/* csl_rings.c */
struct ring *csl_ring(struct fabric *f, int capacity, uint8_t consumer_kind, uint32_t consumer, int index);
void csl_push(struct fabric *f, struct ring *r, int64_t at, uint32_t payload, uint8_t tag);
void csl_pop(struct fabric *f, struct ring *r, int64_t at);
struct ring *csl_input_of(struct fabric *f, uint32_t node, int side, int color);

/* csl_ports.c */
void csl_sink_take(struct csl_fabric *f, struct csl_sink *s, uint32_t payload, bool control, int64_t cycle);
struct csl_sink *csl_find_sink(struct csl_fabric *f, uint32_t node, int side, int color);

/* csl_router.c */
struct ring *csl_landing(struct csl_core *c, int color); /* the ring of the PE that takes a color; NULL if none */
void csl_routes_changed(struct fabric *f, uint32_t node);
uint8_t csl_next_position(const struct csl_route *r);

/* csl_tasks.c */
void csl_wake(struct csl_core *c, int64_t at); /* it may have something to start */
void csl_wait(struct csl_core *c, enum core_state state, int queue, const struct pe_site *site);
void csl_sleep_until_clock(struct csl_core *c);

/* csl_operands.c */
void csl_set_memory(struct csl_core *c, struct csl_place_of *p, const csl_dsd *d, int bytes, const csl_options *options,
                    const struct instruction *ins, const struct pe_site *site);

/* csl_streams.c */
void csl_run_stream(struct csl_core *c, struct csl_stream *set_up, bool async, const struct pe_site *site);
uint32_t csl_take_element(struct csl_core *c, struct csl_place_of *p, const struct pe_site *site);

/* csl_report.c */
void csl_report(struct csl_fabric *f, bool at_end);
void csl_report_details(struct csl_fabric *f);

#endif
