"""What the machine can do: fused multiply-adds and memory traffic, by kernels made for nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from contender import MOST, Contender, Stage

from polyloom.mdh.device.devices import DeviceKind, OpenDevice, choose_device, open_device

FMA = """
__kernel void fma_peak(__global float *out, const float seed) {
  FLOATN a[CHAINS];
  for (int c = 0; c < CHAINS; ++c) a[c] = (FLOATN)(seed + c);
  const FLOATN x = (FLOATN)(seed * 0.999f), y = (FLOATN)(seed * 1e-3f);
  for (int n = 0; n < ROUNDS; ++n) {
    #pragma unroll
    for (int c = 0; c < CHAINS; ++c) a[c] = fma(a[c], x, y);
  }
  FLOATN sum = a[0];
  for (int c = 1; c < CHAINS; ++c) sum += a[c];
  VSTORE(sum, get_global_id(0), out);
}
"""
TRAFFIC = """
__kernel void scale(__global const FLOATN *in, __global FLOATN *out, const int each) {
  const int at = get_group_id(0) * each * get_local_size(0) + get_local_id(0);
  for (int n = 0; n < each; ++n)
    out[at + n * get_local_size(0)] = in[at + n * get_local_size(0)] * 2.0f;
}
__kernel void sum(__global const FLOATN *in, __global FLOATN *out, const int each) {
  const int at = get_group_id(0) * each * get_local_size(0) + get_local_id(0);
  FLOATN a = 0, b = 0, c = 0, d = 0;
  for (int n = 0; n < each; n += 4) {
    a += in[at + n * get_local_size(0)];
    b += in[at + (n + 1) * get_local_size(0)];
    c += in[at + (n + 2) * get_local_size(0)];
    d += in[at + (n + 3) * get_local_size(0)];
  }
  out[get_global_id(0)] = a + b + c + d;
}
"""
ROUNDS = 20000
ELEMENTS = 1 << 25


class Peak(Contender):
    """Its "times" are rates: operations (fma) or bytes (scale: read and written, sum: read) per second."""

    def load(self) -> None:
        import pyopencl as cl

        self.cl = cl
        self.device: OpenDevice = open_device(choose_device(self.argument))
        model = self.device.model
        gpu = model.kind is DeviceKind.GPU
        self.items = 256 if gpu else 1
        self.groups = model.compute_units * (16 if gpu else 4)
        width = 1 if gpu else max(1, model.vector_bytes // 4)
        lanes = f"float{width}" if width > 1 else "float"
        store = f"vstore{width}(v, i, p)" if width > 1 else "(p)[i] = v"
        self.width, chains = width, 12
        head = f"#define FLOATN {lanes}\n#define VSTORE(v, i, p) {store}\n"
        head += f"#define CHAINS {chains}\n#define ROUNDS {ROUNDS}\n"
        options = list(model.build_options)
        program = cl.Program(self.device.context, head + FMA + TRAFFIC).build(options)
        self.kernels = {name: cl.Kernel(program, name) for name in ("fma_peak", "scale", "sum")}
        flags = cl.mem_flags.READ_WRITE
        self.memory = [cl.Buffer(self.device.context, flags, 4 * ELEMENTS) for _ in range(2)]
        for buffer in self.memory:
            cl.enqueue_fill_buffer(self.device.queue, buffer, np.float32(1), 0, 4 * ELEMENTS)
        self.operations = 2 * chains * width * ROUNDS * self.groups * self.items

    def prepare(self, stage: Stage, name: str) -> str:
        return ""

    def visit(self, stage: Stage, seconds: float) -> dict[str, list[float]]:
        stage("visit")
        each = ELEMENTS // (self.groups * self.items * self.width) // 4 * 4
        moved = 4 * each * self.groups * self.items * self.width
        out, first = self.memory
        return {
            "fma": self._rates("fma_peak", self.operations, seconds, out, np.float32(0.5)),
            "scale": self._rates("scale", 2 * moved, seconds, first, out, np.int32(each)),
            "sum": self._rates("sum", moved, seconds, first, out, np.int32(each)),
        }

    def _rates(self, name: str, amount: int, seconds: float, *arguments: Any) -> list[float]:
        import time

        rates: list[float] = []
        end = time.perf_counter() + seconds / 3
        while len(rates) < 3 or (time.perf_counter() < end and len(rates) < MOST):
            shape = (self.groups * self.items,)
            event = self.kernels[name](self.device.queue, shape, (self.items,), *arguments)
            event.wait()
            rates.append(amount / ((event.profile.end - event.profile.start) * 1e-9))
        return rates[1:]
