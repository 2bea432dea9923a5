"""The programs of the folder ``handwritten`` on the simulator, and what is measured of them.

Every measurement is a function of a machine that returns cycles; `machine_validation.py` sets it beside what
others have published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from polyloom.wafer.machine.instructions import table_text
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.simulator.build import build_program
from polyloom.wafer.simulator.fabric import Fabric
from polyloom.wafer.simulator.result import Result, Trace, TraceKind

PROGRAMS = Path(__file__).parent / "handwritten"
Content = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Run:
    """A program of the folder ``handwritten`` that has run; ``arrivals``: cycles at which words left it."""

    result: Result
    arrivals: tuple[int, ...]

    @property
    def trace(self) -> Trace:
        assert self.result.trace is not None
        return self.result.trace


@cache
def _built(program: str, sizes: tuple[tuple[str, int], ...]) -> Path:
    texts = {path.name: path.read_text() for path in (PROGRAMS / program).iterdir()}
    header = "".join(f"#define {name} {value}\n" for name, value in sizes)
    return build_program(texts | {"size.h": header}, table_text())


def run(
    program: str,
    machine: Machine,
    sizes: Mapping[str, int],
    *,
    width: int = 1,
    traced: int = 1,
    words_out: int = 0,
    memory: Mapping[int, Content] | None = None,
) -> Run:
    """Run a program on a row of PEs, its memory zero but for ``memory`` (offset to content).

    ``traced``: so many PEs from the west; ``words_out``: expected at the east end of the row.
    """
    roomy = replace(machine, reserved_bytes=2048)  # the programs' code is small
    binary = _built(program, tuple(sizes.items()))
    chosen = [(x, 0) for x in range(traced)]
    with Fabric(binary, roomy, width, 1, trace=True, trace_only=chosen) as fabric:
        _fill(fabric, width, memory or {})
        if words_out:
            fabric.sink("east", 0, width - 1, words_out)
        result = fabric.run()
        assert result.error is None, result.error
        cycles = fabric.received("east", 0, width - 1)[2] if words_out else np.zeros(0, np.int64)
        return Run(result, tuple(cycles.tolist()))


def _fill(fabric: Fabric, width: int, memory: Mapping[int, Content]) -> None:
    xs, ys = np.arange(width), np.zeros(width, np.int64)
    size = int(fabric.memory_bytes(xs[:1], ys[:1])[0])
    image = np.zeros(size, np.uint8)
    for offset, content in memory.items():
        image[offset : offset + content.nbytes] = content.view(np.uint8)
    words = size // 2 * 2
    data = np.broadcast_to(image[:words], (width, words))
    fabric.load(xs, ys, 0, data, np.ones((width, words // 2), np.bool_), 2)


def task_cycles(trace: Trace, machine: Machine) -> int:
    """Return the cycles between the first and the last statement of the task `work` on the first PE."""
    events = trace.events
    mine = (events["pe"] == 0) & (events["kind"] == TraceKind.TASK)
    (work,) = events[mine & (events["name"] == trace.names.index("work"))]
    return int(work["duration"]) - machine.local_task_activate


def to_last_instruction(trace: Trace) -> int:
    """Return the cycles from the activation of `work` to the end of the last instruction on the first PE."""
    events = trace.events[trace.events["pe"] == 0]
    work = events[(events["kind"] == TraceKind.TASK) & (events["name"] == trace.names.index("work"))]
    instructions = events[np.isin(events["kind"], (TraceKind.SIMD, TraceKind.MICROTHREAD))]
    return int((instructions["start"] + instructions["duration"]).max() - work["start"][0])


def multiply(n: int, gap: int, machine: Machine) -> float:
    sizes = {"N": n, "GAP": gap}
    return task_cycles(run("multiply", machine, sizes).trace, machine)


def gemm(rows: int, inner: int, columns: int, machine: Machine) -> float:
    sizes = {"ROWS": rows, "INNER": inner, "COLUMNS": columns}
    return task_cycles(run("gemm", machine, sizes).trace, machine)


FORMATS = ("COO", "CSR", "CSC", "ELLPACK")


def spmm(form: str, n: int, padded: int, machine: Machine) -> float:
    """Return the cycles of a sparse product, all n x n elements of A there, B and C in the same banks."""
    elements = n * n
    outer, inner = (a.astype(np.int32).ravel() for a in np.indices((n, n)))
    starts = np.arange(0, elements + 1, n, dtype=np.int32)
    memory = {4 * elements: outer if form == "COO" else inner}
    if form == "COO":
        memory[8 * elements] = inner
    elif form != "ELLPACK":
        memory[8 * elements] = starts
    sizes = {"FORMAT": FORMATS.index(form), "ROWS": n, "COLUMNS": n, "ELEMENTS": elements}
    sizes |= {"PADDED": padded, "GAP": 1}
    return task_cycles(run("spmm", machine, sizes, memory=memory).trace, machine)


def chain(width: int, n: int, machine: Machine) -> float:
    sizes = {"WIDTH": width, "N": n, "MICROTHREADS": 0}
    return task_cycles(run("chain", machine, sizes, width=width).trace, machine)


def chain_of_microthreads(width: int, n: int, machine: Machine) -> float:
    sizes = {"WIDTH": width, "N": n, "MICROTHREADS": 1}
    return to_last_instruction(run("chain", machine, sizes, width=width).trace)


def two_phase(width: int, n: int, step: int, machine: Machine) -> float:
    sizes = {"WIDTH": width, "N": n, "STEP": step}
    return task_cycles(run("two_phase", machine, sizes, width=width).trace, machine)


def relayed(width: int, n: int, machine: Machine) -> float:
    return to_last_instruction(run("relayed", machine, {"WIDTH": width, "N": n}, width=width).trace)


def copy(n: int, machine: Machine) -> float:
    return to_last_instruction(run("copy", machine, {"N": n}).trace)


def words(relay: bool, machine: Machine) -> float:
    """Cycles a word of 1000 that are sent, or passed on, one by one."""
    n, width = 1000, 2 if relay else 1
    arrivals = run("words", machine, {"N": n}, width=width, words_out=n).arrivals
    return (arrivals[-1] - arrivals[0]) / (n - 1)


def broadcast_hop(machine: Machine) -> float:
    """Cycles between the tasks that the first word starts on neighbouring receivers."""
    trace = run("broadcast", machine, {"N": 5, "WIDTH": 4}, width=4, traced=4).trace
    takes = trace.events[trace.events["name"] == trace.names.index("take")]
    first = [int(takes[takes["pe"] == x]["start"].min()) for x in (1, 2, 3)]
    assert first[2] - first[1] == first[1] - first[0]
    return first[1] - first[0]


def stream(machine: Machine) -> float:
    """Cycles a word of 1000 over one link, sent by one instruction."""
    n = 1000
    arrivals = run("broadcast", machine, {"N": n, "WIDTH": 1}, words_out=n).arrivals
    return (arrivals[-1] - arrivals[0]) / (n - 1)
