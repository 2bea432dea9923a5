/* CUDA C as C++ of this machine: groups one after another, the items of a group as coroutines that meet at barriers.
 *
 * It shows what kernels compute, as gcc reads them: not NVIDIA's compiler, no warps, no caches, no two items at a
 * time. Between barriers the items run forwards and backwards in turns, so that what one leaves to another
 * without a barrier is likely to be seen. Memory of groups and of the device begins as garbage.
 */
#ifndef ON_HOST_H
#define ON_HOST_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tuple>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
static dim3 blockIdx, threadIdx, blockDim, gridDim;

namespace on_host {
struct Item {
  ucontext_t context;
  std::vector<char> stack;
  bool is_done;
};
static std::vector<Item> items;
static ucontext_t scheduler;
static unsigned current;
static void (*body)(void *);
static void *argument;

static void enter() {
  body(argument);
  items[current].is_done = true;
}

static void run_group(unsigned count) {
  if (items.size() < count)
    items.resize(count);
  for (unsigned k = 0; k < count; k++) {
    Item &item = items[k];
    item.stack.resize(1 << 16);
    item.is_done = false;
    getcontext(&item.context);
    item.context.uc_stack.ss_sp = item.stack.data();
    item.context.uc_stack.ss_size = item.stack.size();
    item.context.uc_link = &scheduler;
    makecontext(&item.context, enter, 0);
  }
  for (unsigned round = 0, done = 0; done < count; round++) {
    done = 0;
    for (unsigned k = 0; k < count; k++) {
      current = round % 2 ? count - 1 - k : k;
      threadIdx = dim3(current, 0, 0);
      if (!items[current].is_done)
        swapcontext(&scheduler, &items[current].context);
      done += items[current].is_done;
    }
    if (done && done < count) {
      fprintf(stderr, "on_host: %u of %u items of a group are at a barrier that others never reach\n", count - done, count);
      abort();
    }
  }
}

static void barrier() { swapcontext(&items[current].context, &scheduler); }

template <typename... P, size_t... K>
void call(void (*kernel)(P...), void **arguments, std::index_sequence<K...>) {
  (void)arguments;
  kernel(*(typename std::remove_cv<P>::type *)arguments[K]...);
}

/* Run a kernel as so many groups of so many items. */
template <typename... P> void launch(void (*kernel)(P...), void **arguments, unsigned groups, unsigned count) {
  struct Call {
    void (*kernel)(P...);
    void **arguments;
  } what = {kernel, arguments};
  body = [](void *given) {
    Call *call_ = (Call *)given;
    call(call_->kernel, call_->arguments, std::index_sequence_for<P...>());
  };
  argument = &what;
  blockDim = dim3(count);
  gridDim = dim3(groups);
  for (unsigned group = 0; group < groups; group++) {
    blockIdx = dim3(group, 0, 0);
    run_group(count);
  }
}
} // namespace on_host

#define __syncthreads() on_host::barrier()

#endif
