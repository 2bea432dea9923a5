/* What the host side of a program that Polyloom compiled needs of OpenCL: one device, one queue, buffers.
 *
 * Needs nothing but a C11 compiler and an OpenCL library: where <CL/cl.h> is missing, the few declarations
 * that are used here stand below. Macros that one may define when compiling:
 *   POLYLOOM_OPENCL_LIBRARY  the OpenCL library that is loaded when it is needed first; without it libOpenCL.so.1
 *                            of the system or, where that has no driver, the one that pip brought with Polyloom
 *   POLYLOOM_LINK            do not load it: the program is linked with -lOpenCL
 *   POLYLOOM_NO_DRIVER_PATCH leave PoCL's memory alone where it does not know the processor
 *   POLYLOOM_KERNELS         a folder, "out" say: kernels are read from its .cl files in place of the built-in text
 *   POLYLOOM_ALIGNMENT       arrays at multiples of so many bytes are used in place by devices that are CPUs
 * The variable POLYLOOM_DEVICE of the environment chooses a device by a part of its name or its platform's.
 * What cannot be done here is declined before anything has changed: functions return 0. A fault of OpenCL is one
 * message on stderr; after it nothing runs on OpenCL. A fault once kernels run ends the program, with exit status 1.
 */
#ifndef POLYLOOM_OPENCL_H
#define POLYLOOM_OPENCL_H

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
extern int lstat(const char *, struct stat *);
#endif
extern int setenv(const char *, const char *, int);

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#if defined(__APPLE__)
#include <OpenCL/cl.h>
#define POLYLOOM_HAS_CL_H
#elif defined(__has_include)
#if __has_include(<CL/cl.h>)
#include <CL/cl.h>
#define POLYLOOM_HAS_CL_H
#endif
#endif

#ifndef POLYLOOM_HAS_CL_H
typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;
#define CL_SUCCESS 0
#define CL_TRUE 1
#define CL_PLATFORM_NAME 0x0902
#define CL_DEVICE_TYPE_CPU (1 << 1)
#define CL_DEVICE_TYPE_GPU (1 << 2)
#define CL_DEVICE_TYPE_ALL 0xFFFFFFFF
#define CL_DEVICE_TYPE 0x1000
#define CL_DEVICE_NAME 0x102B
#define CL_DEVICE_VERSION 0x102F
#define CL_MEM_READ_WRITE (1 << 0)
#define CL_MEM_USE_HOST_PTR (1 << 3)
#define CL_MAP_READ (1 << 0)
#define CL_PROGRAM_BUILD_LOG 0x1183
#endif

#ifndef POLYLOOM_ALIGNMENT
#define POLYLOOM_ALIGNMENT 16
#endif

/* Every function of OpenCL that is used: result, name, parameters. */
#define POLYLOOM_OPENCL_FUNCTIONS(F)                                                                          \
  F(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                                         \
  F(cl_int, clGetPlatformInfo, (cl_platform_id, cl_uint, size_t, void *, size_t *))                           \
  F(cl_int, clGetDeviceIDs, (cl_platform_id, cl_ulong, cl_uint, cl_device_id *, cl_uint *))                   \
  F(cl_int, clGetDeviceInfo, (cl_device_id, cl_uint, size_t, void *, size_t *))                               \
  F(cl_context, clCreateContext, (const intptr_t *, cl_uint, const cl_device_id *,                            \
      void (*)(const char *, const void *, size_t, void *), void *, cl_int *))                                \
  F(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, cl_ulong, cl_int *))                   \
  F(cl_program, clCreateProgramWithSource, (cl_context, cl_uint, const char **, const size_t *, cl_int *))    \
  F(cl_int, clBuildProgram, (cl_program, cl_uint, const cl_device_id *, const char *,                         \
      void (*)(cl_program, void *), void *))                                                                  \
  F(cl_int, clGetProgramBuildInfo, (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *))             \
  F(cl_int, clReleaseProgram, (cl_program))                                                                   \
  F(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                                          \
  F(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                                       \
  F(cl_mem, clCreateBuffer, (cl_context, cl_ulong, size_t, void *, cl_int *))                                 \
  F(cl_int, clReleaseMemObject, (cl_mem))                                                                     \
  F(cl_int, clEnqueueReadBuffer, (cl_command_queue, cl_mem, cl_uint, size_t, size_t, void *, cl_uint,         \
      const cl_event *, cl_event *))                                                                          \
  F(cl_int, clEnqueueWriteBuffer, (cl_command_queue, cl_mem, cl_uint, size_t, size_t, const void *, cl_uint,  \
      const cl_event *, cl_event *))                                                                          \
  F(cl_int, clEnqueueCopyBuffer, (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint,          \
      const cl_event *, cl_event *))                                                                          \
  F(void *, clEnqueueMapBuffer, (cl_command_queue, cl_mem, cl_uint, cl_ulong, size_t, size_t, cl_uint,        \
      const cl_event *, cl_event *, cl_int *))                                                                \
  F(cl_int, clEnqueueUnmapMemObject, (cl_command_queue, cl_mem, void *, cl_uint, const cl_event *,            \
      cl_event *))                                                                                            \
  F(cl_int, clEnqueueNDRangeKernel, (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,    \
      const size_t *, cl_uint, const cl_event *, cl_event *))                                                 \
  F(cl_int, clFinish, (cl_command_queue))

#define POLYLOOM_POINTER(result, name, parameters) result(*name) parameters;
#ifndef POLYLOOM_LINK
#include <dirent.h>
#include <dlfcn.h>
#if defined(POLYLOOM_OPENCL_LIBRARY)
#define POLYLOOM_LIBRARIES POLYLOOM_OPENCL_LIBRARY
#elif defined(__APPLE__)
#define POLYLOOM_LIBRARIES "/System/Library/Frameworks/OpenCL.framework/OpenCL"
#elif defined(POLYLOOM_PIP_LIBRARY)
#define POLYLOOM_LIBRARIES "libOpenCL.so.1", "libOpenCL.so", POLYLOOM_PIP_LIBRARY
#else
#define POLYLOOM_LIBRARIES "libOpenCL.so.1", "libOpenCL.so"
#endif
static struct { POLYLOOM_OPENCL_FUNCTIONS(POLYLOOM_POINTER) } polyloom_cl;
#define POLYLOOM_CL(name) polyloom_cl.name
#else
#ifndef POLYLOOM_HAS_CL_H
#define POLYLOOM_PROTOTYPE(result, name, parameters) extern result name parameters;
POLYLOOM_OPENCL_FUNCTIONS(POLYLOOM_PROTOTYPE)
#endif
#define POLYLOOM_CL(name) name
#endif

/* A text with kernels, and how it is built; its program once it was needed. */
struct polyloom_source {
  const char *name; /* of the file beside this one that holds the same text */
  const char *const *lines;
  cl_uint line_count;
  const char *options;
  cl_program program;
};

/* A kernel in a source; itself once it was needed. */
struct polyloom_kernel {
  struct polyloom_source *source;
  const char *name;
  cl_kernel kernel;
};

static struct {
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
  int is_cpu;
  unsigned launches;
  jmp_buf begun; /* where a call began that may still be declined */
  int may_decline, is_broken;
} polyloom;

#ifdef __GNUC__
#define POLYLOOM_APART __attribute__((noinline))
#else
#define POLYLOOM_APART
#endif

/* Whether OpenCL can be tried. */
static int polyloom_begin(void) {
  polyloom.may_decline = !polyloom.is_broken;
  return polyloom.may_decline;
}

/* An array of the caller on the device. */
struct polyloom_array {
  cl_mem memory;
  const char *name;
  void *host; /* NULL: the device alone has it */
  size_t bytes;
  size_t first, end; /* the kernels touch no other bytes than from `first` to before `end` */
  int read, written; /* whether its values matter, whether it changes */
  int shared;        /* the device works in the caller's memory, */
  int beside;        /* which is that of another one in part */
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

static const char *polyloom_error_name(cl_int code) {
  switch (code) {
  case -1: return "there is no such device";
  case -2: return "the device is not available";
  case -3: return "the device has no compiler";
  case -4: return "the device has too little memory for it (CL_MEM_OBJECT_ALLOCATION_FAILURE)";
  case -5: return "the device has too few resources (CL_OUT_OF_RESOURCES)";
  case -6: return "the host has too little memory (CL_OUT_OF_HOST_MEMORY)";
  case -11: return "the kernels do not build (CL_BUILD_PROGRAM_FAILURE)";
  case -45: return "the kernels were not built (CL_INVALID_PROGRAM_EXECUTABLE)";
  case -46: return "the kernels do not hold it (CL_INVALID_KERNEL_NAME)";
  case -52: return "arguments are missing (CL_INVALID_KERNEL_ARGS)";
  case -54: return "the device cannot have work-groups of this size (CL_INVALID_WORK_GROUP_SIZE)";
  case -55: return "the device cannot have work-items like these (CL_INVALID_WORK_ITEM_SIZE)";
  case -61: return "the device cannot have buffers of this size (CL_INVALID_BUFFER_SIZE)";
  case -63: return "too many work-items (CL_INVALID_GLOBAL_WORK_SIZE)";
  case -1001: return "no OpenCL platform is installed";
  default: return NULL;
  }
}

static void polyloom_check(cl_int code, const char *what) {
  if (code == CL_SUCCESS)
    return;
  const char *name = polyloom_error_name(code);
  char number[40];
  snprintf(number, sizeof number, "OpenCL error %d", (int)code);
  polyloom_fail(what, name ? name : number);
}

#ifndef POLYLOOM_LINK
#define POLYLOOM_LOAD(result, name, parameters)                                                               \
  *(void **)&polyloom_cl.name = dlsym(library, #name);                                                        \
  whole = whole && polyloom_cl.name;

/* Whether a text ends so. */
static int polyloom_ends(const char *text, const char *end) {
  size_t length = strlen(text), last = strlen(end);
  return length >= last && strcmp(text + length - last, end) == 0;
}

/* Load the driver that a file NAME.icd names: one beside it, without a path, which no loader would find. */
static void polyloom_load_driver(const char *folder, const char *name) {
  char path[8192], driver[1024] = "";
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "r");
  if (!file)
    return;
  if (fgets(driver, sizeof driver, file) && !strchr(driver, '/')) {
    driver[strcspn(driver, " \t\r\n")] = 0;
    snprintf(path, sizeof path, "%s/%s", folder, driver);
    dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  fclose(file);
}

/* The library that pip brings with PyOpenCL lies in PYOPENCL_HOME/.libs, a variable that Python sets, and so do
 * its drivers. */
static void polyloom_show_drivers(const char *library) {
  char folder[4096];
  const char *end = strstr(library, "/.libs/");
  if (!end || (size_t)(end - library) + 8 > sizeof folder)
    return;
  snprintf(folder, sizeof folder, "%.*s", (int)(end - library), library);
  const char *given = getenv("PYOPENCL_HOME");
  if (!given || !*given)
    setenv("PYOPENCL_HOME", folder, 1);
  strcat(folder, "/.libs");
  DIR *directory = opendir(folder);
  for (struct dirent *entry; directory && (entry = readdir(directory));)
    if (polyloom_ends(entry->d_name, ".icd"))
      polyloom_load_driver(folder, entry->d_name);
  if (directory)
    closedir(directory);
}

/* Take the functions from a library: 0 where it cannot be loaded or lacks one, 1 where it has no platform. */
static int polyloom_load_from(const char *name) {
  cl_uint platforms = 0;
  int whole = 1;
  polyloom_show_drivers(name);
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return 0;
  POLYLOOM_OPENCL_FUNCTIONS(POLYLOOM_LOAD)
  return !whole ? 0 : polyloom_cl.clGetPlatformIDs(0, NULL, &platforms) == CL_SUCCESS && platforms ? 2 : 1;
}

static void polyloom_load(void) {
  static const char *const libraries[] = {POLYLOOM_LIBRARIES};
  char reason[1024] = "";
  int best = 0;
  for (size_t k = 0; k < sizeof libraries / sizeof *libraries; k++) {
    int found = polyloom_load_from(libraries[k]);
    if (found == 2)
      return;
    best = found ? found : best;
    const char *said = found ? NULL : dlerror();
    if (!*reason)
      snprintf(reason, sizeof reason, "%s", said ? said : libraries[k]);
  }
  if (best)
    polyloom_check(-1001, "no device");
  polyloom_fail("the OpenCL library cannot be loaded", reason);
}
#else
static void polyloom_load(void) {}
#endif

/* How well a device fits: the same device best, then the same kind, then any. */
static int polyloom_fitness(cl_device_id device, const char *platform, const char *made_for, int for_gpu) {
  char name[256] = "";
  cl_ulong type = 0;
  POLYLOOM_CL(clGetDeviceInfo)(device, CL_DEVICE_NAME, sizeof name - 1, name, NULL);
  POLYLOOM_CL(clGetDeviceInfo)(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
  if (strstr(platform, "FPGA"))
    return 0;
  const char *wanted = getenv("POLYLOOM_DEVICE");
  if (wanted && *wanted)
    return strstr(name, wanted) || strstr(platform, wanted) ? 4 : 0;
  if (strcmp(name, made_for) == 0)
    return 3;
  cl_ulong kind = for_gpu ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_CPU;
  return type & kind ? 2 : 1;
}

static cl_device_id polyloom_choose(const char *made_for, int for_gpu) {
  cl_platform_id platforms[16];
  cl_device_id devices[32], best = NULL;
  cl_uint platform_count = 0, device_count = 0;
  int best_fitness = 0;
  cl_int code = POLYLOOM_CL(clGetPlatformIDs)(16, platforms, &platform_count);
  if (code != CL_SUCCESS || platform_count == 0)
    polyloom_check(-1001, "no device");
  for (cl_uint p = 0; p < platform_count && p < 16; p++) {
    char name[256] = "";
    POLYLOOM_CL(clGetPlatformInfo)(platforms[p], CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    if (POLYLOOM_CL(clGetDeviceIDs)(platforms[p], CL_DEVICE_TYPE_ALL, 32, devices, &device_count) != CL_SUCCESS)
      continue;
    for (cl_uint d = 0; d < device_count && d < 32; d++) {
      int fitness = polyloom_fitness(devices[d], name, made_for, for_gpu);
      if (fitness > best_fitness) {
        best_fitness = fitness;
        best = devices[d];
      }
    }
  }
  if (!best && getenv("POLYLOOM_DEVICE"))
    polyloom_fail("no device is called as POLYLOOM_DEVICE says", getenv("POLYLOOM_DEVICE"));
  if (!best)
    polyloom_check(-1, "no device");
  return best;
}

#if defined(__linux__) && defined(__x86_64__) && defined(__GNUC__) && !defined(POLYLOOM_NO_DRIVER_PATCH)
/* The best processor name of LLVM 14 whose instructions this processor has: one for each of PoCL's libraries. */
static const char *polyloom_llvm_cpu(void) {
  __builtin_cpu_init();
  int haswell = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (haswell && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return "skylake-avx512";
  if (haswell)
    return "haswell";
  if (__builtin_cpu_supports("avx"))
    return "sandybridge";
  if (__builtin_cpu_supports("sse4.1"))
    return "penryn";
  return __builtin_cpu_supports("ssse3") ? "core2" : "x86-64";
}

/* Read memory of this program at an address that may be none; return how many bytes there were. */
static int64_t polyloom_peek(int memory, uint64_t address, void *target, size_t bytes) {
  return lseek(memory, (off_t)address, SEEK_SET) < 0 ? -1 : (int64_t)read(memory, target, bytes);
}

/* Whether the text at an address, which may be none, begins with or contains `word`. */
static int polyloom_points_to(int memory, uint64_t address, const char *word, int exactly) {
  char text[64] = "";
  if (address < 4096 || address >> 47 || polyloom_peek(memory, address, text, sizeof text - 1) <= 0)
    return 0;
  return exactly ? strcmp(text, word) == 0 : strstr(text, word) != NULL;
}

/* PoCL asks its copy of LLVM for the name of the CPU. A CPU that is younger than that LLVM is called
 * `generic`, which its compiler then refuses ("unknown target CPU 'generic'"): nothing can be built. A Zen 4
 * is called `znver3`, which has no AVX-512, although PoCL's library for AVX-512 is used: results are wrong.
 * In PoCL's structure for the device, the pointer to that name stands behind the pointer to the target
 * triple. This finds it and lets it name an older CPU with the same vector instructions. Memory is read
 * through /proc/self/mem, where a wrong address is an error and no crash. Returns whether there was exactly
 * one such pointer. */
static int polyloom_repair_pocl(cl_device_id device, const char *old) {
  static char name[32];
  uint64_t words[512];
  char **place = NULL;
  int memory = open("/proc/self/mem", O_RDONLY), places = 0;
  if (memory < 0)
    return 0;
  int64_t found = polyloom_peek(memory, (uint64_t)(uintptr_t)device, words, sizeof words);
  for (int64_t k = 1; k < found / 8; k++)
    if (polyloom_points_to(memory, words[k], old, 1) && polyloom_points_to(memory, words[k - 1], "-linux", 0)) {
      place = (char **)device + k;
      places++;
    }
  close(memory);
  if (places != 1)
    return 0;
  strcpy(name, polyloom_llvm_cpu());
  *place = name;
  fprintf(stderr,
          "polyloom: PoCL does not know this processor: in its memory it is now called %s "
          "(-DPOLYLOOM_NO_DRIVER_PATCH forbids that)\n",
          name);
  return 1;
}

/* Give a Zen 4 a name with AVX-512, see above. */
static void polyloom_repair_zen(cl_device_id device) {
  static const char before[] = "-linux-gnu-znver";
  char version[256] = "", *found;
  POLYLOOM_CL(clGetDeviceInfo)(device, CL_DEVICE_VERSION, sizeof version - 1, version, NULL);
  found = strstr(version, "PoCL HSTR") ? strstr(version, before) : NULL;
  if (!found || strcmp(polyloom_llvm_cpu(), "skylake-avx512") != 0)
    return;
  found += strlen("-linux-gnu-");
  found[strcspn(found, " ")] = 0;
  polyloom_repair_pocl(device, found);
}
#else
static void polyloom_repair_zen(cl_device_id device) { (void)device; }
static int polyloom_repair_pocl(cl_device_id device, const char *old) {
  (void)device;
  (void)old;
  return 0;
}
#endif

/* Return the log of a failed build; the caller frees it. */
static char *polyloom_log(cl_program program) {
  size_t size = 0;
  POLYLOOM_CL(clGetProgramBuildInfo)(program, polyloom.device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
  char *log = calloc(size + 1, 1);
  if (log)
    POLYLOOM_CL(clGetProgramBuildInfo)(program, polyloom.device, CL_PROGRAM_BUILD_LOG, size, log, NULL);
  return log;
}

static cl_program polyloom_try_build(cl_uint count, const char **lines, const char *options, cl_int *code) {
  cl_program program = POLYLOOM_CL(clCreateProgramWithSource)(polyloom.context, count, lines, NULL, code);
  polyloom_check(*code, "the kernels");
  *code = POLYLOOM_CL(clBuildProgram)(program, 1, &polyloom.device, options, NULL, NULL);
  return program;
}

#ifdef POLYLOOM_KERNELS
static char *polyloom_read(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", POLYLOOM_KERNELS, name);
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END))
    polyloom_fail(path, "the kernels cannot be read");
  long size = ftell(file);
  char *text = size < 0 ? NULL : calloc((size_t)size + 1, 1);
  rewind(file);
  if (!text || fread(text, 1, (size_t)size, file) != (size_t)size)
    polyloom_fail(path, "the kernels cannot be read");
  fclose(file);
  return text;
}
#endif

/* Return the built kernels. */
static cl_program polyloom_build(const struct polyloom_source *source) {
  const char **lines = (const char **)(uintptr_t)source->lines;
  cl_uint count = source->line_count;
#ifdef POLYLOOM_KERNELS
  const char *text = polyloom_read(source->name);
  lines = &text;
  count = 1;
#endif
  cl_int code;
  cl_program program = polyloom_try_build(count, lines, source->options, &code);
  if (code != CL_SUCCESS) {
    char *log = polyloom_log(program);
    if (log && strstr(log, "unknown target CPU") && polyloom_repair_pocl(polyloom.device, "generic")) {
      free(log);
      POLYLOOM_CL(clReleaseProgram)(program);
      program = polyloom_try_build(count, lines, source->options, &code);
      log = code == CL_SUCCESS ? NULL : polyloom_log(program);
    }
    if (code != CL_SUCCESS && log)
      fprintf(stderr, "%s\n", log);
    free(log);
  }
  polyloom_check(code, "the kernels");
  return program;
}

#if defined(__linux__)
/* Make a folder, and those above it, where they are missing; return whether it can be written. */
static int polyloom_make_folder(char *path) {
  for (char *end = path; end && *path; ) {
    end = strchr(end + 1, '/');
    if (end)
      *end = 0;
    mkdir(path, 0700);
    if (end)
      *end = '/';
  }
  return access(path, W_OK | X_OK) == 0;
}

/* PoCL has no device where it cannot write its cache, as for users without a home: name a folder of the user's own
 * among the temporary ones, unless somebody else has made one of that name. */
static void polyloom_lend_cache(void) {
  char path[4096];
  struct stat found;
  const char *stated = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *temporary = getenv("TMPDIR");
  if (getenv("POCL_CACHE_DIR"))
    return;
  if (stated && *stated)
    snprintf(path, sizeof path, "%s/pocl/kcache", stated);
  else
    snprintf(path, sizeof path, "%s/.cache/pocl/kcache", home ? home : "");
  if (((stated && *stated) || (home && *home)) && polyloom_make_folder(path))
    return;
  snprintf(path, sizeof path, "%s/polyloom-pocl-%ld", temporary && *temporary ? temporary : "/tmp", (long)getuid());
  mkdir(path, 0700);
  if (lstat(path, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == getuid() && !(found.st_mode & 077))
    setenv("POCL_CACHE_DIR", path, 1);
}
#else
static void polyloom_lend_cache(void) {}
#endif

/* Choose a device and make its queue, once; `made_for` is the device that the kernels were made for. */
static inline void polyloom_open(const char *made_for, int for_gpu) {
  cl_int code;
  cl_ulong type = 0;
  if (polyloom.queue)
    return;
  if (!getenv("PYOPENCL_HOME")) /* without it the library that pip brings crashes where it finds no driver */
    setenv("PYOPENCL_HOME", "", 1);
  polyloom_lend_cache();
  polyloom_load();
  polyloom.device = polyloom_choose(made_for, for_gpu);
  POLYLOOM_CL(clGetDeviceInfo)(polyloom.device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
  polyloom.is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
  polyloom_repair_zen(polyloom.device);
  polyloom.context = POLYLOOM_CL(clCreateContext)(NULL, 1, &polyloom.device, NULL, NULL, &code);
  polyloom_check(code, "the device");
  polyloom.queue = POLYLOOM_CL(clCreateCommandQueue)(polyloom.context, polyloom.device, 0, &code);
  polyloom_check(code, "the device's queue");
}

/* Return a kernel that can be launched: built when it is needed first. */
static inline cl_kernel polyloom_ready(struct polyloom_kernel *kernel) {
  cl_int code;
  if (kernel->kernel)
    return kernel->kernel;
  if (!kernel->source->program)
    kernel->source->program = polyloom_build(kernel->source);
  kernel->kernel = POLYLOOM_CL(clCreateKernel)(kernel->source->program, kernel->name, &code);
  polyloom_check(code, kernel->name);
  return kernel->kernel;
}

/* Return memory on the device that the host never sees. */
static inline struct polyloom_array polyloom_local(const char *name, size_t bytes) {
  cl_int code;
  struct polyloom_array array = {NULL, name, NULL, bytes, 0, bytes, 0, 0, 0, 0};
  array.memory =
      POLYLOOM_CL(clCreateBuffer)(polyloom.context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &code);
  polyloom_check(code, name);
  return array;
}

/* Describe an array of the caller, of which the kernels touch the bytes from `first` to before `end`. */
static inline struct polyloom_array polyloom_argument(const char *name, void *host, size_t bytes, size_t first,
                                                      size_t end, int read, int written) {
  if (first >= end)
    first = end = 0;
  if (end && !host)
    polyloom_decline(name, "the pointer is NULL");
  struct polyloom_array array = {NULL, name, host, bytes, first, end, read, written, 0, 0};
  return array;
}

/* Whether any byte from `p` to before `q` is one from `r` to before `s`. */
static inline int polyloom_meet(const char *p, const char *q, const char *r, const char *s) {
  return p < q && r < s && p < s && r < q;
}

/* Bring an array to the device. */
static inline void polyloom_bring(struct polyloom_array *array) {
  cl_int code = CL_SUCCESS;
  char *host = array->host;
  array->shared = polyloom.is_cpu && array->end && !array->beside && (uintptr_t)host % POLYLOOM_ALIGNMENT == 0;
  array->memory = POLYLOOM_CL(clCreateBuffer)(
      polyloom.context, array->shared ? CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR : CL_MEM_READ_WRITE,
      array->bytes ? array->bytes : 1, array->shared ? host : NULL, &code);
  polyloom_check(code, array->name);
  if (!array->shared && array->read && array->end)
    code = POLYLOOM_CL(clEnqueueWriteBuffer)(polyloom.queue, array->memory, CL_TRUE, array->first,
                                             array->end - array->first, host + array->first, 0, NULL, NULL);
  polyloom_check(code, array->name);
}

/* Bring arrays to the device. Kernels may run at the same time as others only on memory of their own: arrays whose
   bytes that are touched overlap are declined; others may be parts of one array of the caller. */
static inline void polyloom_enter(struct polyloom_array *const *arrays, int count) {
  for (int a = 0; a < count; a++) {
    for (int b = 0; b < count; b++) {
      struct polyloom_array *one = arrays[a];
      const struct polyloom_array *other = arrays[b];
      const char *p = one->host, *q = other->host;
      if (a == b || !(one->written || other->written) || !p || !q)
        continue;
      if (polyloom_meet(p + one->first, p + one->end, q + other->first, q + other->end))
        polyloom_decline(one->name, "it shares memory with another array");
      one->beside |= polyloom_meet(p, p + one->bytes, q, q + other->bytes);
    }
  }
  for (int a = 0; a < count; a++)
    polyloom_bring(arrays[a]);
}

/* Give memory on the device free, once the kernels in the queue are done with it. */
static inline void polyloom_release(const struct polyloom_array *array) {
  polyloom_check(POLYLOOM_CL(clReleaseMemObject)(array->memory), array->name);
}

/* Let `array` be memory of at least so many bytes; what an earlier launch had is used again. */
static inline void polyloom_temporary(struct polyloom_array *array, const char *name, size_t bytes) {
  if (array->memory && array->bytes >= bytes)
    return;
  if (array->memory)
    polyloom_release(array);
  *array = polyloom_local(name, bytes);
}

/* Bring back what was written, and give the device's memory free. */
static inline void polyloom_leave(struct polyloom_array *array) {
  cl_int code = CL_SUCCESS;
  if (array->written && array->shared) {
    void *mapped = POLYLOOM_CL(clEnqueueMapBuffer)(polyloom.queue, array->memory, CL_TRUE, CL_MAP_READ, 0,
                                                   array->bytes, 0, NULL, NULL, &code);
    polyloom_check(code, array->name);
    code = POLYLOOM_CL(clEnqueueUnmapMemObject)(polyloom.queue, array->memory, mapped, 0, NULL, NULL);
    if (code == CL_SUCCESS)
      code = POLYLOOM_CL(clFinish)(polyloom.queue);
  } else if (array->written && array->end) {
    code = POLYLOOM_CL(clEnqueueReadBuffer)(polyloom.queue, array->memory, CL_TRUE, array->first,
                                            array->end - array->first, (char *)array->host + array->first, 0, NULL,
                                            NULL);
  }
  polyloom_check(code, array->name);
  polyloom_release(array);
}

static inline void polyloom_copy(const struct polyloom_array *from, const struct polyloom_array *to) {
  polyloom.may_decline = 0;
  if (from->bytes)
    polyloom_check(POLYLOOM_CL(clEnqueueCopyBuffer)(polyloom.queue, from->memory, to->memory, 0, 0, from->bytes, 0,
                                                    NULL, NULL),
                   to->name);
}

static inline void polyloom_set(struct polyloom_kernel *kernel, cl_uint position, size_t bytes, const void *value) {
  polyloom_check(POLYLOOM_CL(clSetKernelArg)(polyloom_ready(kernel), position, bytes, value), kernel->name);
}

static inline void polyloom_pass(struct polyloom_kernel *kernel, cl_uint position,
                                 const struct polyloom_array *array) {
  polyloom_set(kernel, position, sizeof array->memory, &array->memory);
}

static inline void polyloom_pass_long(struct polyloom_kernel *kernel, cl_uint position, int64_t value) {
  polyloom_set(kernel, position, sizeof value, &value);
}

static inline void polyloom_pass_int(struct polyloom_kernel *kernel, cl_uint position, int64_t value) {
  int32_t narrow = (int32_t)value;
  if (narrow != value)
    polyloom_decline(kernel->name, "a size or iterator does not fit into 32 bits");
  polyloom_set(kernel, position, sizeof narrow, &narrow);
}

/* Give a kernel so many bytes of local memory. */
static inline void polyloom_pass_local(struct polyloom_kernel *kernel, cl_uint position, int64_t bytes) {
  polyloom_set(kernel, position, bytes > 0 ? (size_t)bytes : 1, NULL);
}

/* Start a kernel on `global` work-items in groups of `local` (NULL: as the driver likes). */
static inline void polyloom_launch(struct polyloom_kernel *kernel, cl_uint dimensions, const int64_t *global,
                                   const int64_t *local) {
  size_t items[3], group[3];
  for (cl_uint d = 0; d < dimensions; d++) {
    if (global[d] <= 0)
      return;
    items[d] = (size_t)global[d];
    group[d] = local ? (size_t)local[d] : 0;
  }
  polyloom.may_decline = 0;
  polyloom_check(POLYLOOM_CL(clEnqueueNDRangeKernel)(polyloom.queue, polyloom_ready(kernel), dimensions, NULL,
                                                     items, local ? group : NULL, 0, NULL, NULL),
                 kernel->name);
  if (++polyloom.launches % 256 == 0) /* what is only enqueued takes memory of the driver */
    polyloom_check(POLYLOOM_CL(clFinish)(polyloom.queue), kernel->name);
}

static inline void polyloom_finish(void) {
  polyloom_check(POLYLOOM_CL(clFinish)(polyloom.queue), "running the kernels");
}

/* Rounded towards minus infinity. */
static inline int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

/* The number of bytes of an array; a negative extent counts as 0. */
static inline size_t polyloom_bytes(size_t element, int dimensions, const int64_t *extents) {
  size_t bytes = element;
  for (int d = 0; d < dimensions; d++) {
    size_t extent = extents[d] > 0 ? (size_t)extents[d] : 0;
    if (extent && bytes > SIZE_MAX / extent)
      polyloom_decline("an array", "it has more bytes than an address counts");
    bytes *= extent;
  }
  return bytes;
}

#endif
