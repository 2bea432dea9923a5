/* What C emitted from CSL may use: the contract between the lowering of CSL and the simulated wafer.
 *
 *   memory       csl_load_f32(address)  csl_store_u16(address, v) ...      flat bytes; a CSL pointer is a 16-bit byte address
 *   descriptors  csl_mem1d  csl_mem4d  csl_fabin  csl_fabout  csl_fifo  and what changes one: csl_increment_dsd_offset ...
 *   registers    csl_load_to_dsr(CSL_DEST | CSL_SRC0 | CSL_SRC1, number, dsd, save_address)
 *   operations   csl_run(CSL_fmacs, &options, destination, sources...)     csl_map(step, captured, &options, ...)
 *   tasks        csl_activate(id)  csl_block(id)  csl_unblock(id)
 *   queues       csl_queue_flush  csl_set_input_queue_color  csl_set_output_queue_color
 *   routers      csl_set_config(word address, value)  csl_get_config(...)  csl_teardown_exit(color)
 *   the rest     csl_timestamp()  csl_command_done()  csl_print(...)  csl_assert(...)  cost(.operations = 2, .loads = 1)
 *   the program  CSL_PROGRAM(name, .memory_bytes, .state_bytes, .tasks, .queues, .functions ...)
 *
 * Semantics follow the CSL documentation of SDK 2.10 (language/dsds, dsrs, task-ids, builtins, builtins_wse3, libraries);
 * where that is silent, the line here says what is assumed. Costs are those of the machine model (wafer/machine).
 *
 * An emitted unit includes this file and nothing else, and defines one CSL_PROGRAM; everything else in it is static. */
#ifndef POLYLOOM_CSL_H
#define POLYLOOM_CSL_H

#include "arithmetic.h"
#define PE_FILE __FILE__
#include "pe_state.h"

/* ---- Memory ------------------------------------------------------------------------------------------------------
 *
 * A PE has .memory_bytes of plain data, addressed by bytes from 0; the lowering places all variables, address-taken locals
 * and local arrays. Python hands over the initial image and which 16-bit words of it are initialised; what is not is
 * poison until written: scalar code that reads it fails, DSD operations carry it along, and it may not leave the PE.
 * Word addresses from CSL_REGISTERS on (byte addresses are twice as large) are the registers of router and queues. */

enum csl_type { CSL_NO_TYPE, CSL_I8, CSL_U8, CSL_I16, CSL_U16, CSL_I32, CSL_U32, CSL_I64, CSL_U64, CSL_F16, CSL_F32, CSL_BOOL };

typedef uint16_t csl_address; /* bytes */

enum { CSL_REGISTERS = 0x7e00 }; /* first word address of the registers of configuration */

uint64_t csl_read_outside(csl_address address, int bytes, const struct pe_site *site);
void csl_write_outside(csl_address address, int bytes, uint64_t value, const struct pe_site *site);

static inline bool csl_inside(csl_address address, size_t bytes) { return address + bytes <= self->memory_bytes; }

#define CSL_SCALAR(name, type, bits_type) \
  static inline type csl_read_##name(csl_address address, const struct pe_site *site) { \
    type value; \
    if (__builtin_expect(!csl_inside(address, sizeof value), 0)) { \
      bits_type bits = (bits_type)csl_read_outside(address, sizeof value, site); \
      __builtin_memcpy(&value, &bits, sizeof value); \
      return value; \
    } \
    for (size_t word = address / 2u; word <= (address + sizeof value - 1) / 2; word++) \
      if (__builtin_expect(!self->shadow[word], 0)) pe_fail_poison(site); \
    __builtin_memcpy(&value, self->memory + address, sizeof value); \
    return value; \
  } \
  static inline void csl_write_##name(csl_address address, type value, const struct pe_site *site) { \
    if (__builtin_expect(!csl_inside(address, sizeof value), 0)) { \
      bits_type bits; \
      __builtin_memcpy(&bits, &value, sizeof value); \
      csl_write_outside(address, sizeof value, bits, site); \
      return; \
    } \
    for (size_t word = address / 2u; word <= (address + sizeof value - 1) / 2; word++) self->shadow[word] = 1; \
    __builtin_memcpy(self->memory + address, &value, sizeof value); \
  }
CSL_SCALAR(i8, int8_t, uint8_t)
CSL_SCALAR(u8, uint8_t, uint8_t)
CSL_SCALAR(i16, int16_t, uint16_t)
CSL_SCALAR(u16, uint16_t, uint16_t)
CSL_SCALAR(i32, int32_t, uint32_t)
CSL_SCALAR(u32, uint32_t, uint32_t)
CSL_SCALAR(i64, int64_t, uint64_t)
CSL_SCALAR(u64, uint64_t, uint64_t)
CSL_SCALAR(f16, half, uint16_t)
CSL_SCALAR(f32, float, uint32_t)
CSL_SCALAR(bool, bool, uint8_t)

/* The value at an address, and writing one: csl_load(f32, a), csl_store(u16, a, v). A pointer is a u16. */
#define csl_load(type, address) PE_DO("load(" #address ")", csl_read_##type(address, &pe_here))
#define csl_store(type, address, value) PE_DO("store(" #address ")", csl_write_##type(address, value, &pe_here))

/* An index of an array of `length` elements, checked: csl_index(i, 10). */
_Noreturn void csl_fail_index(int64_t index, int64_t length, const struct pe_site *site);
#define csl_index(index, length) \
  __extension__({ \
    PE_HERE(#index); \
    int64_t csl_i = (int64_t)(index); \
    if (__builtin_expect(csl_i < 0 || csl_i >= (int64_t)(length), 0)) csl_fail_index(csl_i, (length), &pe_here); \
    csl_i; \
  })

/* Copies and clears of whole arrays and structures by scalar code; poison is copied as it is. The emitted cost covers them. */
void csl_copy(csl_address to, csl_address from, size_t bytes, const struct pe_site *site);
void csl_fill_zero(csl_address to, size_t bytes, const struct pe_site *site);

/* What the scalar work of a basic block costs: cost(.operations=, .loads=, .stores=, .multiplications=, .iterations=,
 * .branches=), each a count. DSD operations, tasks and the fabric cost what the machine says by themselves. */
#define cost(...) (PE_LINE(), pe_cost((struct pe_work){__VA_ARGS__}))

/* Values that are no plain bytes (DSDs in variables, ...) live in a structure of the unit's own, one for each PE. It is
 * zeroed; .initialise of the program fills it, at no cost. */
#define CSL_STATE(type) ((type *)csl_state_of_pe())
void *csl_state_of_pe(void);

/* Numbers in which programs that share their functions differ: those of the program that the PE runs. */
int64_t csl_number(size_t index);
double csl_float(size_t index);

_Noreturn void csl_fail(const char *kind, const char *message, const struct pe_site *site); /* unreachable, @assert, ... */
#define csl_assert(condition, message) \
  PE_DO(message, { if (!(condition)) csl_fail("assertion", message, &pe_here); })

/* ---- Data structure descriptors ----------------------------------------------------------------------------------- */

enum csl_kind { CSL_UNSET, CSL_MEMORY, CSL_FABIN, CSL_FABOUT, CSL_FIFO };
enum csl_on_control { CSL_CONTROL_DEFAULT, CSL_CONTROL_TERMINATE, CSL_CONTROL_ACTIVATE, CSL_CONTROL_UNBLOCK };
enum csl_priority { CSL_PRIORITY_DEFAULT, CSL_PRIORITY_LOW, CSL_PRIORITY_MEDIUM, CSL_PRIORITY_HIGH };
enum { CSL_INFINITE = 0x7fff }; /* an extent that never ends; source: comments of public examples on the length field */

typedef struct {
  uint8_t kind;     /* enum csl_kind */
  uint8_t dims;     /* of a memory DSD: 1 (mem1d) to 4 */
  uint8_t bytes;    /* of its elements as declared, for messages; the operation says what it takes */
  uint8_t queue;    /* of a fabric DSD; the number of a FIFO */
  uint8_t color;    /* of a fabout on wse2 (CSL_QUEUE_COLOR: that of the queue) */
  uint8_t control;  /* fabout: what leaves are control wavelets */
  uint8_t index;    /* `wavelet_index_offset`: the operation's .index is added, in 16-bit words */
  uint8_t pack;     /* fabric: 16-bit elements in a wavelet, 1 (0 means 1) or 2; the low half comes first */
  uint8_t on_control, on_control_id; /* fabin: what a control wavelet does, and to which task; default: see csl_run */
  uint8_t mem4d;    /* declared as mem4d_dsd, if of one dimension only */
  int32_t base;     /* byte address of element 0, without the offset */
  int32_t offset;   /* in elements of the operation */
  uint32_t low, high; /* bytes of the variable that the operand must stay in; high 0: looked up in .arrays by the base */
  uint16_t extent[4]; /* outermost first */
  int16_t stride[4];  /* in elements, of each dimension alone (not the deltas of CSL's explicit strides) */
} csl_dsd;

enum { CSL_QUEUE_COLOR = 0xff };

/* Memory DSDs. For constants in static initialisers use the structure itself. The bounds are those of the variable of
 * .arrays that `base` lies in (of all of memory if there is none). */
csl_dsd csl_mem1d(csl_address base, int bytes, uint16_t extent, int stride, int offset);
csl_dsd csl_mem4d(csl_address base, int bytes, int dims, const uint16_t *extent, const int16_t *stride, int offset);
static inline csl_dsd csl_fabin(int queue, uint16_t extent) {
  return (csl_dsd){.kind = CSL_FABIN, .dims = 1, .queue = (uint8_t)queue, .color = CSL_QUEUE_COLOR, .extent = {extent}};
}
static inline csl_dsd csl_fabout(int queue, int color, uint16_t extent) {
  return (csl_dsd){.kind = CSL_FABOUT, .dims = 1, .queue = (uint8_t)queue, .color = (uint8_t)color, .extent = {extent}};
}
static inline csl_dsd csl_fifo(int number) { /* index into .fifos of the program */
  return (csl_dsd){.kind = CSL_FIFO, .dims = 1, .queue = (uint8_t)number, .extent = {CSL_INFINITE}};
}

/* @increment_dsd_offset(d, n, T), @set_dsd_base_addr (drops the offset), @set_dsd_length, @set_dsd_stride: a changed copy.
 * Costs included. */
csl_dsd csl_increment_dsd_offset(csl_dsd d, int elements, int bytes_of_type, const struct pe_site *site);
csl_dsd csl_set_dsd_base_addr(csl_dsd d, csl_address base, int bytes_of_type, const struct pe_site *site);
csl_dsd csl_set_dsd_length(csl_dsd d, int64_t length, const struct pe_site *site);
csl_dsd csl_set_dsd_stride(csl_dsd d, int64_t stride, const struct pe_site *site);

/* ---- Operations ------------------------------------------------------------------------------------------------------
 *
 * Every DSD operation of the SDK, by its name without the @: CSL_mov32, CSL_fmacs ... (csl_operations.inc). Operands are
 * DSDs, DSRs, FIFOs, scalars (bits; sources only) or addresses of scalars (CSL pointers).
 *
 * Types: an operation fixes the size of each operand's elements; extent, stride and offset count in those.
 * Length: that of the first source that has one (scalars, addresses, FIFOs and infinite ones have none), else of the
 * destination (source: comments of public examples); an operand in memory with fewer elements is an error.
 * A destination that is an address: every element is written there; a source that is the same address is read anew for each
 * element, so that (p, p, dsd) accumulates (assumed: the documentation calls such operands zero-stride). So does (p, scalar,
 * dsd), which begins with the scalar: public examples find maxima of vectors so.
 * Synchronous: the main thread waits; asynchronous needs an operand of the fabric or a FIFO and runs as a microthread: of
 * .ut, else of the output queue's number, else of the input queue's. Two at once on one number or one queue: an error.
 * Control wavelets that come to a fabin operand: .on_control of the DSD or the operation; by default they wait in
 * the queue where a control task can take them once the operation has ended, except that those with NOCE never reach
 * the PE (the router keeps them). */

enum csl_operation {
#define CSL_OPERATION1(name, ...) CSL_##name,
#define CSL_OPERATION2(name, ...) CSL_##name,
#define CSL_OPERATION3(name, ...) CSL_##name,
#include "csl_operations.inc"
#undef CSL_OPERATION1
#undef CSL_OPERATION2
#undef CSL_OPERATION3
  CSL_OPERATIONS
};

#define CSL_ID(number) ((number) + 1) /* ids in options: 0 means none */

typedef struct {
  bool async;
  uint8_t activate, unblock; /* CSL_ID(task id), at the end of an asynchronous operation */
  uint8_t ut;                /* CSL_ID(microthread id), wse3 */
  uint8_t priority;          /* enum csl_priority */
  uint8_t on_control, on_control_id; /* enum csl_on_control; CSL_ID(task id) of ACTIVATE and UNBLOCK */
  bool has_index;
  int32_t index;             /* 16-bit words added to operands with `wavelet_index_offset` */
} csl_options;

typedef struct {
  uint8_t kind; /* enum csl_operand_kind */
  uint8_t file, number; /* of a DSR */
  uint8_t type; /* enum csl_type of a scalar */
  uint32_t bits; /* a scalar, or an address */
  csl_dsd dsd;
} csl_operand;

enum csl_operand_kind { CSL_OF_DSD, CSL_OF_DSR, CSL_OF_SCALAR, CSL_OF_ADDRESS };
enum csl_dsr_file { CSL_DEST, CSL_SRC0, CSL_SRC1 };

static inline csl_operand csl_of_dsd(csl_dsd d) { return (csl_operand){.kind = CSL_OF_DSD, .dsd = d}; }
static inline csl_operand csl_of_fifo(int number) { return csl_of_dsd(csl_fifo(number)); }
static inline csl_operand csl_of_dsr(enum csl_dsr_file file, int number) {
  return (csl_operand){.kind = CSL_OF_DSR, .file = (uint8_t)file, .number = (uint8_t)number};
}
static inline csl_operand csl_of_address(csl_address a) { return (csl_operand){.kind = CSL_OF_ADDRESS, .bits = a}; }
static inline csl_operand csl_of_u16(uint16_t v) { return (csl_operand){.kind = CSL_OF_SCALAR, .type = CSL_U16, .bits = v}; }
static inline csl_operand csl_of_i16(int16_t v) { return csl_of_u16((uint16_t)v); }
static inline csl_operand csl_of_u32(uint32_t v) { return (csl_operand){.kind = CSL_OF_SCALAR, .type = CSL_U32, .bits = v}; }
static inline csl_operand csl_of_i32(int32_t v) { return csl_of_u32((uint32_t)v); }
static inline csl_operand csl_of_f32(float v) {
  csl_operand o = {.kind = CSL_OF_SCALAR, .type = CSL_F32};
  __builtin_memcpy(&o.bits, &v, 4);
  return o;
}
static inline csl_operand csl_of_f16(half v) {
  csl_operand o = {.kind = CSL_OF_SCALAR, .type = CSL_F16};
  __builtin_memcpy(&o.bits, &v, 2);
  return o;
}

void csl_operate(enum csl_operation name, const csl_options *options, csl_operand to, const csl_operand *sources, int count,
                 const struct pe_site *site);
/* csl_run(CSL_fmacs, (csl_options){0}, to, a, b, csl_of_f32(x)); */
#define csl_run(name, options, to, ...) \
  PE_DO(#name, ({ \
    const csl_operand csl_sources[] = {__VA_ARGS__}; \
    const csl_options csl_given = (options); \
    csl_operate(name, &csl_given, to, csl_sources, (int)(sizeof csl_sources / sizeof *csl_sources), &pe_here); \
  }))

/* @map: one step for each element. in[k] holds the bits of source k's element; the step puts the bits of the result into
 * *out where there is a destination. Scalars, pointers and everything else reach it by `captured`. A source may be a fabin;
 * the step may run DSD operations. It costs what the step costs, and an iteration of a loop for each. Synchronous.
 * bytes[k]: element sizes of the sources; bytes_out that of the destination (0: none; then `to` is ignored). */
typedef void csl_step(void *captured, const uint32_t *in, uint32_t *out);
void csl_map(csl_step *step, void *captured, const csl_operand *sources, const uint8_t *bytes, int count, csl_operand to,
             int bytes_out, const struct pe_site *site);

/* ---- Registers ---------------------------------------------------------------------------------------------------------
 *
 * @load_to_dsr. With .save_address the next operation goes on where the last one ended (mem1d); options that were given here
 * (async, activate, unblock, ut, priority ...) hold for operations whose destination, or if that says nothing, source it
 * is, when they are asynchronous themselves. */
enum { CSL_DSRS = 32 }; /* a file has as many as the machine file says; numbers above are an error */
void csl_load_to_dsr(enum csl_dsr_file file, int number, csl_dsd d, bool save_address, const csl_options *options,
                     const struct pe_site *site);
csl_dsd csl_dsr_value(enum csl_dsr_file file, int number, const struct pe_site *site); /* what it holds now */

/* ---- Tasks ---------------------------------------------------------------------------------------------------------------
 *
 * One space of ids, as on the machine. wse2: a data task's id is its color (0 to 23), local tasks 0 to 30, control tasks 0 to
 * 63. wse3: a data task's id is its input queue (0 to 7), local tasks 8 to 30, control tasks 0 to 63. Blocking an id of a
 * color (wse2) or queue (wse3) keeps data and control wavelets of it in the queue. Ids with a data task start unblocked,
 * colors and queues without one blocked (a fabin reads them, or @unblock), local tasks unblocked and not activated.
 * Pick order (assumed; not documented): local tasks that are activated and unblocked, in rotation by id; after each of
 * them, if there is one, a wavelet of a queue whose id is unblocked, in rotation. */
void csl_activate(int id, const struct pe_site *site);
void csl_block(int id, const struct pe_site *site);
void csl_unblock(int id, const struct pe_site *site);

/* ---- Control wavelets -------------------------------------------------------------------------------------------------------
 *
 * The payload of a control wavelet: 8 commands of a 2-bit opcode and a bit NOCE (do not hand it to the PE), the control
 * task's id in bits 16 to 21, and 16 bits of data for it in the low half. The first command's opcode stands in bits 22-23,
 * its NOCE in 24; the second's in 25-26 and 27; the others' opcodes from bits 28, 1, 4, 7, 10, 13 on, NOCE in 0, 3, 6, 9, 12, 15.
 * Source: public examples compose it so (25-pt-stencil, spmv-hypersparse). A router executes the first command, after
 * the wavelet has been forwarded by the position before it; pop modes remove it so that the next router sees the next. */
enum csl_opcode { CSL_NOP, CSL_SWITCH_ADV, CSL_SWITCH_RST, CSL_TEARDOWN };

/* ---- Queues, routers, the host ------------------------------------------------------------------------------------------------ */

/* @queue_flush: the teardown task (id 29) runs once the queue is empty; it calls the handler of @set_empty_queue_handler
 * for that queue. Exit clears the state. */
void csl_queue_flush(bool output, int queue, const struct pe_site *site);
bool csl_queue_flush_pending(bool output, int queue);
void csl_queue_flush_exit(bool output, int queue);
void csl_set_input_queue_color(int queue, int color, const struct pe_site *site);
void csl_set_output_queue_color(int queue, int color, const struct pe_site *site);
bool csl_output_drained(int queue); /* all wavelets of that output queue have left this PE's router */

/* A color is in teardown after a TEARDOWN command or by its configuration: its router moves nothing. Wavelets from a direction
 * that a color does not take now wait where they are. */
bool csl_teardown_pending(int color);
void csl_teardown_exit(int color);

/* Registers by word address: 0x7f20 + c: routes of color c (bits 0-4 tx west east south north ramp, 5-9 rx in that order,
 * 10 swap of N,S, 11 swap of E,W inputs, 12-13 pop mode, 14 teardown); 0x7f40 + c: its switches (0-2, 4-6, 8-10: positions 1, 2, 3:
 * 0 W, 1 E, 2 S, 3 N, 4 ramp, 5 invalid; bits 3, 7, 11: it is an input; 12 ring mode; 13-14 current position). Source: comments of
 * public examples; the code of the pop mode is ours: 0 none, 1 always, 3 on advance. 0x7f60 + id, an address of ours: 0 if the task
 * with this id starts after all others, else 1. Others: an error. Also what loads and stores of 16 bits reach at twice these addresses. */
uint16_t csl_get_config(int word_address, const struct pe_site *site);
void csl_set_config(int word_address, uint16_t value, const struct pe_site *site);

int64_t csl_timestamp(void); /* cycles; 48 bits of it are visible to CSL */
int csl_x(void);             /* of the PE in the program's rectangle */
int csl_y(void);

/* unblock_cmd_stream(): the command of the host that runs now is complete; the next one may start. */
void csl_command_done(void);
/* simprint and the like: text for the host's log, collected until a newline. */
void csl_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- The program ----------------------------------------------------------------------------------------------------------------- */

enum csl_task_kind { CSL_TASK_END, CSL_DATA_TASK, CSL_LOCAL_TASK, CSL_CONTROL_TASK };

struct csl_task {
  uint8_t kind, id;
  const char *name;
  void (*run)(uint32_t wavelet); /* data task: the payload; control task: its 16 bits of data; local: 0 */
};

struct csl_queue { /* @initialize_queue; on wse3 outputs too */
  uint8_t present, output, queue, color; /* color CSL_QUEUE_COLOR: none given */
};

struct csl_function { /* what the host may launch by name */
  const char *name;
  void (*run)(const uint32_t *words); /* a word an argument */
};

struct csl_fifo { /* @allocate_fifo */
  uint32_t address, bytes;
  uint8_t element_bytes;
  uint8_t activate_push, activate_pop; /* CSL_ID(task id) */
};

struct csl_array { /* a variable in memory that DSDs must stay in; sorted by address */
  uint32_t address, bytes;
  const char *name;
};

struct csl_handler { /* @set_teardown_handler (of a color), @set_empty_queue_handler (of a queue) */
  uint8_t of, number; /* enum csl_handler_of */
  void (*run)(void);
};
enum csl_handler_of { CSL_HANDLER_END, CSL_OF_TEARDOWN, CSL_OF_INPUT_QUEUE, CSL_OF_OUTPUT_QUEUE };

struct csl_program {
  const char *name;
  size_t memory_bytes, state_bytes;
  void (*initialise)(void);       /* fills the state; may be NULL */
  const struct csl_task *tasks;   /* up to one of kind CSL_TASK_END; each of these lists may be NULL */
  const struct csl_queue *queues; /* up to one that is not .present */
  const struct csl_function *functions; /* up to one without a name */
  const struct csl_fifo *fifos;   /* .bytes 0 ends them */
  const struct csl_array *arrays; /* .bytes 0 ends them */
  const struct csl_handler *handlers;
  const uint8_t *activated;       /* CSL_ID(task id) of @activate at comptime, in order, up to 0 */
  const uint8_t *blocked;         /* of @block at comptime */
  const uint8_t *unblocked;       /* of @unblock at comptime */
  const int64_t *numbers;         /* csl_number and csl_float: Polyloom fills these in units that it puts together */
  const double *floats;
};

/* CSL_PROGRAM(unit_3, .memory_bytes = 512, .tasks = tasks): the name is the one that Python places on PEs. */
#define CSL_PROGRAM(program_name, ...) \
  extern const struct csl_program csl_program_##program_name; \
  const struct csl_program csl_program_##program_name = {.name = #program_name, __VA_ARGS__};

#endif
