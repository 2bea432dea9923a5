"""An emitter for tests of the tuner: one kernel of a matrix product, or one that misbehaves as its text says.

Imported by the child process, by name.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace

from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.expressions import Compare, CompareOp, Constant, Expression, Iterator, Read, Select
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.types import ElementType
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.launch import BufferArgument, Kernel, Launch
from polyloom.mdh.lowering.tiles.pipeline import scheduled
from polyloom.mdh.schedule.schedules import plain_schedule
from polyloom.mdh.tree.nodes import Code
from polyloom.polyhedra.loops.tree import Number

F32, I64 = ElementType.FLOAT32, ElementType.INT64

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


def misbehave(kind: str) -> None:
    if kind == "crash":
        os.abort()
    if kind == "hang":
        time.sleep(1000)
    if kind == "fault":
        raise KeyError("a fault of ours")


def emit(hom: MdHom, program: HostProgram, device: DeviceModel, text: str) -> Launch:
    kind = json.loads(text)["kind"]
    misbehave(kind)
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


def code(hom: MdHom, program: HostProgram, device: DeviceModel, text: str) -> Code:
    """As ``emit``, for the processor."""
    kind = json.loads(text)["kind"]
    misbehave(kind)
    if kind == "refused":
        raise PolyloomError(error("native-build", "nonsense"))
    total, i, j = Read(2, F32), Iterator(0, I64), Iterator(1, I64)
    at_corner = Compare(CompareOp.LT, (i - 3) * (i - 3) + (j - 3) * (j - 3), Constant(1, I64))
    finish = {"slow": slow(total), "wrong": total + 1.0, "corner": Select(at_corner, total + 1.0, total)}.get(
        kind
    )
    return scheduled(replace(hom, finish=(finish,)), program.by_name, plain_schedule(3, 2))


def slow(total: Expression) -> Expression:
    """The same value, after a hundred divisions."""
    chain = total * total
    for _ in range(100):
        chain = 1.0 / (chain + 2.0)
    return total + 0.0 * chain
