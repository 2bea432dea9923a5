/* What the host side of a program that Polyloom compiled needs of CUDA: memory, launches, and declining.
 *
 * C++ over CUDA's runtime library, for nvcc. The variable POLYLOOM_DEVICE of the environment chooses a device by a
 * part of its name; CUDA_VISIBLE_DEVICES holds, too. What cannot be done here is declined before the caller's
 * arrays have changed: functions return 0. A fault of CUDA is one message on stderr; after it nothing is tried on
 * CUDA again. A fault once results are copied back ends the program, with exit status 1.
 */
#ifndef POLYLOOM_CUDA_H
#define POLYLOOM_CUDA_H

#include <cuda_runtime.h>

#include <initializer_list>
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  int is_open, is_broken, may_decline;
  jmp_buf begun; /* where a call began that may still be declined */
} polyloom;

#define POLYLOOM_APART __attribute__((noinline))

/* Whether CUDA can be tried. */
static int polyloom_begin() {
  polyloom.may_decline = !polyloom.is_broken;
  return polyloom.may_decline;
}

/* An array of the caller on the device. */
struct polyloom_array {
  void *memory;
  const char *name;
  void *host; /* NULL: the device alone has it */
  size_t bytes;
  size_t first, end; /* the kernels touch no other bytes than from `first` to before `end` */
  int read, written; /* whether its values matter, whether it changes */
};

static void polyloom_fail(const char *what, const char *why) {
  fflush(stdout);
  fprintf(stderr, "polyloom: %s: %s\n", what, why);
  if (!polyloom.may_decline)
    exit(1);
  polyloom.is_broken = 1;
  longjmp(polyloom.begun, 1);
}

/* Decline a call whose arguments are not those that the kernels were made for. */
static void polyloom_decline(const char *what, const char *why) {
  if (polyloom.may_decline)
    longjmp(polyloom.begun, 1);
  polyloom_fail(what, why);
}

static void polyloom_check(cudaError_t code, const char *what) {
  if (code != cudaSuccess) {
    cudaGetLastError();
    polyloom_fail(what, cudaGetErrorString(code));
  }
}

/* Choose a device, once. */
static void polyloom_open() {
  const char *wanted = getenv("POLYLOOM_DEVICE");
  int count = 0;
  if (polyloom.is_open)
    return;
  polyloom_check(cudaGetDeviceCount(&count), "no device");
  int device = 0;
  if (wanted && *wanted) {
    struct cudaDeviceProp about;
    for (device = 0; device < count; device++)
      if (cudaGetDeviceProperties(&about, device) == cudaSuccess && strstr(about.name, wanted))
        break;
    if (device < count)
      polyloom_check(cudaSetDevice(device), "the device");
  }
  if (device >= count)
    polyloom_fail("no device", wanted && *wanted ? wanted : "CUDA has none");
  polyloom.is_open = 1;
}

/* See that a kernel can be launched in groups of so many items. */
static inline void polyloom_ready(const char *name, const void *kernel, int items) {
  struct cudaFuncAttributes about;
  polyloom_check(cudaFuncGetAttributes(&about, kernel), name);
  if (about.maxThreadsPerBlock < items)
    polyloom_fail(name, "the device has too few registers for its groups");
}

static inline void polyloom_take_memory(struct polyloom_array *array) {
  polyloom_check(cudaMalloc(&array->memory, array->bytes ? array->bytes : 1), array->name);
}

/* Return memory on the device that the host never sees. */
static inline struct polyloom_array polyloom_local(const char *name, size_t bytes) {
  struct polyloom_array array = {NULL, name, NULL, bytes, 0, bytes, 0, 0};
  polyloom_take_memory(&array);
  return array;
}

/* Describe an array of the caller, of which the kernels touch the bytes from `first` to before `end`. */
static inline struct polyloom_array polyloom_argument(const char *name, void *host, size_t bytes, size_t first,
                                                      size_t end, int read, int written) {
  if (first >= end)
    first = end = 0;
  if (end && !host)
    polyloom_decline(name, "the pointer is NULL");
  struct polyloom_array array = {NULL, name, host, bytes, first, end, read, written};
  return array;
}

/* Whether what is touched of two arrays overlaps. */
static inline int polyloom_meet(const struct polyloom_array *a, const struct polyloom_array *b) {
  const uintptr_t p = (uintptr_t)a->host, q = (uintptr_t)b->host;
  return a->first < a->end && b->first < b->end && p + a->first < q + b->end && q + b->first < p + a->end;
}

/* Bring arrays to the device. Arrays whose bytes that are touched overlap are declined: on the device they lie
   apart. Rows that a kernel leaves alone come along where others are written: all that is touched is copied. */
static inline void polyloom_enter(std::initializer_list<struct polyloom_array *> arrays, int) {
  for (struct polyloom_array *const *a = arrays.begin(); a != arrays.end(); a++)
    for (struct polyloom_array *const *b = arrays.begin(); b != a; b++)
      if (((*a)->written || (*b)->written) && polyloom_meet(*a, *b))
        polyloom_decline((*a)->name, "it shares memory with another array");
  for (struct polyloom_array *array : arrays) {
    polyloom_take_memory(array);
    if (array->read && array->end)
      polyloom_check(cudaMemcpy((char *)array->memory + array->first, (char *)array->host + array->first,
                                array->end - array->first, cudaMemcpyHostToDevice),
                     array->name);
  }
}

/* Give memory on the device free, once the kernels before are done with it. */
static inline void polyloom_release(const struct polyloom_array *array) {
  polyloom_check(cudaFree(array->memory), array->name);
}

/* Let `array` be memory of at least so many bytes; what an earlier launch had is used again. */
static inline void polyloom_temporary(struct polyloom_array *array, const char *name, size_t bytes) {
  if (array->memory && array->bytes >= bytes)
    return;
  if (array->memory)
    polyloom_release(array);
  array->memory = NULL;
  *array = polyloom_local(name, bytes);
}

/* Bring back what was written, and give the device's memory free. */
static inline void polyloom_leave(struct polyloom_array *array) {
  if (array->written && array->end) {
    polyloom.may_decline = 0; /* from here on the caller's arrays change */
    polyloom_check(cudaMemcpy((char *)array->host + array->first, (char *)array->memory + array->first,
                              array->end - array->first, cudaMemcpyDeviceToHost),
                   array->name);
  }
  polyloom_release(array);
}

static inline void polyloom_copy(const struct polyloom_array *from, const struct polyloom_array *to) {
  if (from->bytes)
    polyloom_check(cudaMemcpyAsync(to->memory, from->memory, from->bytes, cudaMemcpyDeviceToDevice, 0), to->name);
}

/* An argument of a kernel as it wants it. */
template <typename Wanted> static Wanted polyloom_as(const char *, const struct polyloom_array &array) {
  return (Wanted)array.memory;
}

template <typename Wanted> static Wanted polyloom_as(const char *name, int64_t value) {
  if ((int64_t)(Wanted)value != value)
    polyloom_decline(name, "a size or iterator does not fit into 32 bits");
  return (Wanted)value;
}

template <typename... Wanted>
static void polyloom_start(const char *name, void (*kernel)(Wanted...), int64_t groups, int64_t items,
                           Wanted... values) {
  void *pointers[] = {(void *)&values..., NULL};
  if (groups > INT32_MAX)
    polyloom_decline(name, "it has too many groups");
  polyloom_check(cudaLaunchKernel(kernel, dim3((unsigned)groups), dim3((unsigned)items), pointers, 0, 0), name);
}

/* Start a kernel on so many items in all, in groups of `group`. */
template <typename... Wanted, typename... Given>
static void polyloom_launch(const char *name, void (*kernel)(Wanted...), int64_t items, int64_t group,
                            const Given &...given) {
  if (items > 0)
    polyloom_start<Wanted...>(name, kernel, items / group, group, polyloom_as<Wanted>(name, given)...);
}

static inline void polyloom_finish() { polyloom_check(cudaDeviceSynchronize(), "running the kernels"); }

/* Rounded towards minus infinity. */
static inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

/* The number of bytes of an array; a negative extent counts as 0. */
static inline size_t polyloom_bytes(size_t element, int, std::initializer_list<int64_t> extents) {
  size_t bytes = element;
  for (int64_t given : extents) {
    const size_t extent = given > 0 ? (size_t)given : 0;
    if (extent && bytes > SIZE_MAX / extent)
      polyloom_decline("an array", "it has more bytes than an address counts");
    bytes *= extent;
  }
  return bytes;
}

#endif
