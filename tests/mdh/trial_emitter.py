"""An emitter for tests of the tuner: one kernel of a matrix product, or one that misbehaves as its text says.

Imported by the child process, by name.
"""

from __future__ import annotations

import json
import os
import time

from polyloom.ir.host import HostProgram, MdHom
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.kernel.launch import BufferArgument, Kernel, Launch
from polyloom.polyhedra.loops.tree import Number

SOURCE = """
__kernel void mm(__global const float *A, __global const float *B, __global float *C) {
  const int i = get_global_id(0), j = get_global_id(1);
  float sum = 0;
  for (int r = 0; r < REPEAT; ++r)
    for (int k = 0; k < K; ++k)
      sum += A[i * K + k] * B[k * N + j];
  C[i * N + j] = sum / REPEAT + ERROR;
}
"""


def emit(hom: MdHom, program: HostProgram, device: DeviceModel, text: str) -> Launch:
    kind = json.loads(text)["kind"]
    if kind == "crash":
        os.abort()
    if kind == "hang":
        time.sleep(1000)
    if kind == "fault":
        raise KeyError("a fault of ours")
    m, n, k = (extent.value for extent in hom.extents if isinstance(extent, Number))
    source = SOURCE.replace("REPEAT", "500" if kind == "slow" else "1")
    source = source.replace("ERROR", {"wrong": "1", "corner": "(i == 3 && j == 3)"}.get(kind, "0"))
    source = source.replace("K", str(k)).replace("N", str(n))
    if kind == "refused":
        source = source.replace("float sum", "nonsense sum")
    arguments = tuple(BufferArgument(name) for name in ("A", "B", "C"))
    size = (Number(m), Number(n))
    kernel = Kernel(source=source, name="mm", arguments=arguments, global_size=size)
    return Launch((kernel,))
