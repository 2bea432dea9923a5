/* What drop-ins use of CUDA's runtime library, on this machine: memory of a device of its own, full of garbage.
 * FAKE_CUDA_BYTES: how much there is; FAKE_CUDA_FAULT: the name of a function that fails.
 */
#ifndef CUDA_RUNTIME_H
#define CUDA_RUNTIME_H

#include "on_host.h"

typedef int cudaError_t;
enum { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorLaunchFailure = 719 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
struct cudaDeviceProp {
  char name[256];
};
struct cudaFuncAttributes {
  int maxThreadsPerBlock;
};

static cudaError_t fake_fault(const char *name) {
  const char *wanted = getenv("FAKE_CUDA_FAULT");
  return wanted && !strcmp(wanted, name) ? cudaErrorLaunchFailure : cudaSuccess;
}

static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
static inline const char *cudaGetErrorString(cudaError_t code) {
  return code == cudaErrorMemoryAllocation ? "out of memory" : "unspecified launch failure";
}
static inline cudaError_t cudaGetDeviceCount(int *count) { return *count = 1, fake_fault(__func__); }
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *about, int) {
  return strcpy(about->name, "Host"), cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *about, const void *) {
  return about->maxThreadsPerBlock = 1024, fake_fault(__func__);
}
static inline cudaError_t cudaMalloc(void **memory, size_t bytes) {
  const char *most = getenv("FAKE_CUDA_BYTES");
  if (most && bytes > strtoull(most, NULL, 10))
    return cudaErrorMemoryAllocation;
  *memory = malloc(bytes);
  memset(*memory, 0xa5, bytes);
  return cudaSuccess;
}
static inline cudaError_t cudaFree(void *memory) { return free(memory), cudaSuccess; }
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
  memcpy(to, from, bytes);
  return kind == cudaMemcpyDeviceToHost ? fake_fault(__func__) : cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, int) {
  return cudaMemcpy(to, from, bytes, kind);
}
template <typename... P>
static cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 groups, dim3 items, void **arguments, size_t, int) {
  on_host::launch(kernel, arguments, groups.x, items.x);
  return cudaSuccess;
}
static inline cudaError_t cudaDeviceSynchronize() { return fake_fault(__func__); }

#endif
