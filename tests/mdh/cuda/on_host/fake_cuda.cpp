/* CUDA's driver and NVRTC on this machine: kernels are built by g++ and run as ``on_host.h`` does. A vector
 * that does not lie at a multiple of its size ends the process.
 *
 * It shows which functions are called with what, that arrays go there and back, and what kernels compute as
 * gcc reads them. It shows nothing of a GPU: no limits of registers, no two items at a time, no times.
 *
 * FAKE_CUDA_LOG: a file to which a line is added for each call; FAKE_CUDA_DEVICES: how many there are, 1 by
 * itself; FAKE_CUDA_NAME: the name of each; FAKE_CUDA_FAULT: a function that fails; FAKE_CUDA_BYTES: how much
 * memory there is to be had at once; FAKE_CUDA_HEADERS: where on_host.h is.
 */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <set>
#include <string>
#include <unistd.h>

#define API extern "C" __attribute__((visibility("default")))

enum { MEMORY = 2, NO_DEVICE = 100, NOT_FOUND = 500, FAILED = 719, INVALID = 1 };

static void *context; /* the one that is current */
static int one_context;
static std::map<uint64_t, size_t> memory;
static std::set<void *> events;

static const char *variable(const char *name, const char *otherwise) {
  const char *found = getenv(name);
  return found && *found ? found : otherwise;
}

/* Note a call; return what it gives. */
static int called(const char *name, const std::string &about = "", int needs_context = 1) {
  if (FILE *log = fopen(variable("FAKE_CUDA_LOG", "/dev/null"), "a")) {
    fprintf(log, "%s%s%s\n", name, about.empty() ? "" : " ", about.c_str());
    fclose(log);
  }
  if (!strcmp(variable("FAKE_CUDA_FAULT", ""), name))
    return FAILED;
  return needs_context && context != &one_context ? 201 : 0;
}

/* Whether so many bytes from an address on are the device's. */
static bool is_inside(uint64_t address, size_t bytes) {
  auto found = memory.upper_bound(address);
  if (found == memory.begin())
    return false;
  --found;
  return address + bytes <= found->first + found->second;
}

API int cuInit(unsigned) {
  int code = called("cuInit", "", 0);
  return code ? code : atoi(variable("FAKE_CUDA_DEVICES", "1")) ? 0 : NO_DEVICE;
}
API int cuDriverGetVersion(int *version) { return *version = 12040, called("cuDriverGetVersion", "", 0); }
API int cuDeviceGetCount(int *count) {
  return *count = atoi(variable("FAKE_CUDA_DEVICES", "1")), called("cuDeviceGetCount", "", 0);
}
API int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, called("cuDeviceGet", "", 0); }
API int cuDeviceGetName(char *name, int size, int device) {
  const char *same = getenv("FAKE_CUDA_NAME");
  same ? snprintf(name, size, "%s", same) : snprintf(name, size, "Fake GPU %c", 'A' + device);
  return called("cuDeviceGetName", "", 0);
}
API int cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = (size_t)1 << 34, called("cuDeviceTotalMem_v2", "", 0); }
API int cuDeviceGetAttribute(int *value, int attribute, int) {
  static const std::map<int, int> values = {{1, 1024},     {8, 49152},      {10, 32}, {13, 1410000},
                                            {16, 108},     {38, 41943040},  {75, 8},  {76, 0},
                                            {36, 1593000}, {37, 5120},      {39, 2048}, {81, 167936},
                                            {82, 65536}};
  if (!values.count(attribute))
    return INVALID;
  return *value = values.at(attribute), called("cuDeviceGetAttribute", "", 0);
}
API int cuDevicePrimaryCtxRetain(void **made, int) { return *made = &one_context, called("cuDevicePrimaryCtxRetain", "", 0); }
API int cuCtxSetCurrent(void *made) { return context = made, called("cuCtxSetCurrent"); }
API int cuCtxSynchronize() { return called("cuCtxSynchronize"); }
API int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  if (bytes > strtoull(variable("FAKE_CUDA_BYTES", "1000000000"), NULL, 10))
    return MEMORY;
  *address = (uint64_t)malloc(bytes);
  memset((void *)*address, 0xa5, bytes);
  memory[*address] = bytes;
  return called("cuMemAlloc_v2", std::to_string(bytes));
}
API int cuMemFree_v2(uint64_t address) {
  if (!memory.erase(address))
    return INVALID;
  return free((void *)address), called("cuMemFree_v2", "", 0);
}
API int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  return is_inside(to, bytes) ? memcpy((void *)to, from, bytes), called("cuMemcpyHtoD_v2", std::to_string(bytes)) : INVALID;
}
API int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  return is_inside(from, bytes) ? memcpy(to, (void *)from, bytes), called("cuMemcpyDtoH_v2", std::to_string(bytes)) : INVALID;
}
API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *) {
  if (!is_inside(to, bytes) || !is_inside(from, bytes))
    return INVALID;
  return memcpy((void *)to, (void *)from, bytes), called("cuMemcpyDtoDAsync_v2", std::to_string(bytes));
}
API int cuModuleLoadData(void **module, const char *image) {
  char file[] = "/tmp/fake-cuda-XXXXXX";
  const size_t bytes = strtoull(std::string(image, 16).c_str(), NULL, 16);
  const int made = mkstemp(file);
  if (made < 0 || write(made, image + 16, bytes) != (ssize_t)bytes)
    return NOT_FOUND;
  close(made);
  *module = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  unlink(file);
  return *module ? called("cuModuleLoadData") : NOT_FOUND;
}
API int cuModuleUnload(void *) { return called("cuModuleUnload", "", 0); }
API int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = dlsym(module, (std::string("launch_") + name).c_str());
  return *function ? called("cuModuleGetFunction", name) : NOT_FOUND;
}
API int cuFuncGetAttribute(int *value, int, void *) { return *value = 0, called("cuFuncGetAttribute"); }
API int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared,
                       void *, void **arguments, void **) {
  if (!x || y * z * b * c != 1 || a > 1024 || shared)
    return INVALID;
  int code = called("cuLaunchKernel", std::to_string(x) + " x " + std::to_string(a));
  if (!code)
    ((void (*)(void **, unsigned, unsigned))function)(arguments, x, a);
  return code;
}
struct Mark {
  std::chrono::steady_clock::time_point at;
};
API int cuEventCreate(void **event, unsigned) {
  events.insert(*event = new Mark());
  return called("cuEventCreate");
}
API int cuEventRecord(void *event, void *) {
  ((Mark *)event)->at = std::chrono::steady_clock::now();
  return called("cuEventRecord");
}
API int cuEventElapsedTime(float *time, void *first, void *last) {
  if (!events.count(first) || !events.count(last))
    return INVALID;
  *time = std::chrono::duration<float, std::milli>(((Mark *)last)->at - ((Mark *)first)->at).count();
  return called("cuEventElapsedTime");
}
API int cuEventDestroy_v2(void *event) {
  if (!events.erase(event))
    return INVALID;
  delete (Mark *)event;
  return called("cuEventDestroy_v2", "", 0);
}
API int cuGetErrorName(int code, const char **name) {
  static const std::map<int, const char *> names = {{MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"}, {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
                                                    {201, "CUDA_ERROR_INVALID_CONTEXT"},  {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
                                                    {FAILED, "CUDA_ERROR_LAUNCH_FAILED"}, {INVALID, "CUDA_ERROR_INVALID_VALUE"}};
  return *name = names.count(code) ? names.at(code) : NULL, 0;
}
API int cuGetErrorString(int, const char **text) { return *text = "as the fake was told", 0; }

struct Program {
  std::string source, log, image;
};
static std::string content(const std::string &path) {
  std::string found;
  if (FILE *file = fopen(path.c_str(), "rb")) {
    char piece[4096];
    for (size_t count; (count = fread(piece, 1, sizeof piece, file));)
      found.append(piece, count);
    fclose(file);
  }
  return found;
}
/* Add to each kernel a function that takes its arguments as a driver is given them: right behind it, for the
 * kernels of a joint source have other names by ``#define``. */
static std::string with_starts(const std::string &source) {
  const std::string head = "extern \"C\" __global__ void __launch_bounds__(";
  std::string found = "#define START(name) START_OF(name)\n"
                      "#define START_OF(name) extern \"C\" void launch_##name(void **a, unsigned g, unsigned i) "
                      "{ on_host::launch(name, a, g, i); }\n";
  size_t done = 0;
  for (size_t at = 0; (at = source.find(head, at)) != std::string::npos; at++) {
    const size_t first = source.find('\n', at) + 1, end = source.find('(', first), last = source.find("\n}\n", end) + 3;
    found += source.substr(done, last - done) + "START(" + source.substr(first, end - first) + ")\n";
    done = last;
  }
  return found + source.substr(done);
}
API int nvrtcVersion(int *major, int *minor) { return *major = 0, *minor = 2, 0; }
API int nvrtcGetNumSupportedArchs(int *count) { return *count = 1, 0; }
API int nvrtcGetSupportedArchs(int *known) { return known[0] = 80, 0; }
API int nvrtcCreateProgram(Program **made, const char *source, const char *, int, const char **, const char **) {
  return *made = new Program{source, "", ""}, 0;
}
API int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
  std::string about;
  for (int k = 0; k < count; k++)
    about += std::string(k ? " " : "") + options[k];
  called("nvrtcCompileProgram", about, 0);
  char folder[] = "/tmp/fake-cuda-XXXXXX";
  if (!mkdtemp(folder))
    return 1;
  const std::string base = folder, file = base + "/kernel.cpp", object = base + "/kernel.so", log = base + "/log";
  if (FILE *written = fopen(file.c_str(), "w")) {
    fputs(with_starts(program->source).c_str(), written);
    fclose(written);
  }
  const std::string contract = about.find("-fmad=false") == std::string::npos ? "fast" : "off";
  const std::string command = "g++ -w -O1 -shared -fPIC -fsanitize=alignment -fsanitize-undefined-trap-on-error -ffp-contract=" + contract + " -I" + variable("FAKE_CUDA_HEADERS", ".") +
                              " -include on_host.h " + file + " -o " + object + " 2> " + log;
  const int status = system(command.c_str());
  char size[17];
  const std::string made = content(object);
  snprintf(size, sizeof size, "%016zx", made.size());
  program->log = content(log);
  program->image = size + made;
  for (const std::string &each : {file, object, log})
    unlink(each.c_str());
  rmdir(folder);
  return status ? 6 : 0;
}
API int nvrtcGetProgramLogSize(Program *program, size_t *size) { return *size = program->log.size() + 1, 0; }
API int nvrtcGetProgramLog(Program *program, char *text) { return strcpy(text, program->log.c_str()), 0; }
API int nvrtcGetCUBINSize(Program *program, size_t *size) { return *size = program->image.size(), 0; }
API int nvrtcGetCUBIN(Program *program, char *image) { return memcpy(image, program->image.data(), program->image.size()), 0; }
API int nvrtcDestroyProgram(Program **program) { return delete *program, 0; }
