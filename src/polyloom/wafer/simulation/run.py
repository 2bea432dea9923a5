"""Running a compiled layer on the simulated wafer, on NumPy arrays.

What runs is exactly the emitted C. The host's side loads resident tensors, feeds the ports and collects.
Source: docs/simulator.md, docs/semantics.md; docs/interface.md (JSON of simulate).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.polyhedra.effort import naming
from polyloom.polyhedra.functions import function_of
from polyloom.polyhedra.vectorized import Integers, contains, evaluate_function
from polyloom.wafer.dataflow.local_arrays import LocalArray, resident_tensors
from polyloom.wafer.dataflow.reductions import Results
from polyloom.wafer.host.transfers import (
    PortOrder,
    decode,
    encode,
    load_image,
    local_elements,
    padding_image,
    pes_of_role,
    port_orders,
    put,
    wavelet_count,
)
from polyloom.wafer.machine.instructions import table_text
from polyloom.wafer.program.port_groups import PortGroup
from polyloom.wafer.program.wafer_program import RoleProgram, WaferProgram
from polyloom.wafer.simulation.lower_bound import Limit, limit_of
from polyloom.wafer.simulator.build import build_program
from polyloom.wafer.simulator.fabric import Fabric
from polyloom.wafer.simulator.result import Counts, Result, Trace

AnyArray = npt.NDArray[np.generic]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulation(Counts):
    """What came out, and what it took.

    ``outputs``: name to array; with N > 1 invocations, tensors that leave through ports have a leading axis
    N. ``pe_count``: PEs that have a program; ``memory_bytes``: the largest role's data.
    """

    outputs: dict[str, AnyArray]
    pe_count: int
    memory_bytes: int
    limit: Limit
    trace: Trace | None = field(repr=False, default=None)


@dataclass(frozen=True, eq=False)
class _Port:
    """One place where results leave: what is expected there, on which color."""

    group: PortGroup
    order: PortOrder
    color: int


def simulate_program(
    program: WaferProgram,
    inputs: Mapping[str, AnyArray],
    *,
    invocations: int = 1,
    trace: bool = False,
    trace_only: Sequence[tuple[int, int]] | None = None,
    max_cycles: int | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
) -> Simulation:
    """Compile the emitted files natively and run them.

    ``inputs``: an array for every input; with ``invocations`` N > 1, streamed tensors have a leading axis N.
    ``trace`` records what happens when, on all PEs or on those of ``trace_only`` (x, y).
    ``threads`` of the simulator (None: its own choice); they change neither bits nor cycles.
    Raises PolyloomError ``simulation-...`` for everything that the strict simulator refuses.
    """
    grid = program.analysis.border.given.grid
    binary = build_program(program.files, table_text(), lines=trace)
    with Fabric(
        binary,
        program.machine,
        grid.width,
        grid.height,
        invocations,
        trace=trace,
        trace_only=trace_only,
        max_cycles=max_cycles,
        threads=threads,
    ) as fabric:
        with naming("what the host sends to the PEs"):
            load_memory(fabric, program, inputs)
            _feed(fabric, program, inputs, invocations)
            ports = tuple(_ports(program))
        for port in ports:
            fabric.sink(port.order.side.port, port.order.position, port.color, _expected(port, invocations))
        result = fabric.run(progress)
        if result.error is not None:
            raise PolyloomError(fault_of(result))
        with naming("what the host takes from the PEs"):
            outputs = _collect(fabric, program, ports, invocations)
    with naming("the cycles that no code can beat"):
        limit = limit_of(program, inputs, invocations)
    return _simulation(program, outputs, result, limit)


def _simulation(
    program: WaferProgram, outputs: dict[str, AnyArray], result: Result, limit: Limit
) -> Simulation:
    counts = {part.name: getattr(result, part.name) for part in fields(Counts)}
    return Simulation(
        **counts,
        outputs=outputs,
        pe_count=sum(len(pes_of_role(program, role)[0]) for role in program.roles),
        memory_bytes=max((role.memory_bytes for role in program.roles), default=0),
        limit=limit,
        trace=result.trace,
    )


def fault_of(result: Result) -> Diagnostic:
    """Return what the strict simulator found wrong as a diagnostic ``simulation-...``."""
    assert result.error is not None
    fault = result.error
    where = [f"on PE[{fault.pe[0]}, {fault.pe[1]}]"] if fault.pe else []
    where += [f"in task `{fault.task}`"] if fault.task else []
    where += [f"at {fault.place[0]}:{fault.place[1]}"] if fault.place else []
    where.append(f"in cycle {fault.cycle}")
    return error(f"simulation-{fault.kind}", fault.message, notes=[", ".join(where), *fault.details])


def load_memory(
    fabric: Fabric, program: WaferProgram, inputs: Mapping[str, AnyArray], at: tuple[int, int] = (0, 0)
) -> None:
    """Load what lies in the PEs' memory before the start; ``at``: where the rectangle's PE (0, 0) is."""
    analysis = program.analysis
    resident = resident_tensors(analysis.program, analysis.graph)
    for name, array in analysis.arrays.items():
        if name not in resident and not array.zero_padding:
            continue
        for role in program.roles:
            if role.has(array.name):
                xs, ys = pes_of_role(program, role)
                if name in resident:
                    data, mask = load_image(array, inputs[name], xs, ys)
                else:
                    data, mask = padding_image(array, len(xs))
                x, y = (a + b for a, b in zip(role.origin, at, strict=True))
                fabric.load(xs + x, ys + y, role.offset(array.name), data, mask, array.type.size)


def _feed(fabric: Fabric, program: WaferProgram, inputs: Mapping[str, AnyArray], invocations: int) -> None:
    for group in program.inputs:
        tensor = inputs[group.tensor]
        batch = tensor if invocations > 1 else tensor[None]
        for order, color in _orders(program, group):
            parts = [encode(order, batch[n], group) for n in range(invocations)]
            payload = np.concatenate([p for p, _ in parts])
            control = np.concatenate([c for _, c in parts]).astype(np.bool_)
            fabric.source(group.side.port, order.position, color, payload, control)


def _orders(program: WaferProgram, group: PortGroup) -> Iterator[tuple[PortOrder, int]]:
    """Yield the ports of a group, each with its color."""
    extent = program.analysis.border.given.grid.positions(group.side)
    color = function_of(group.color)
    for order in port_orders(group.ports, group.side, extent):
        (value,), _ = evaluate_function(color, [np.full(1, order.position)], {})
        yield order, int(value.item())


def _ports(program: WaferProgram) -> Iterator[_Port]:
    for group in program.outputs:
        for order, color in _orders(program, group):
            yield _Port(group, order, color)


def _expected(port: _Port, invocations: int) -> int:
    """Return how many wavelets come; negative: how many ends of chunk."""
    if port.group.sparse:
        return -port.order.chunk_count * invocations
    return wavelet_count(len(port.order.index), port.group) * invocations


def _collect(
    fabric: Fabric, program: WaferProgram, ports: tuple[_Port, ...], invocations: int
) -> dict[str, AnyArray]:
    tensors = program.analysis.program
    outputs: dict[str, AnyArray] = {}
    for name in tensors.outputs:
        tensor = tensors.buffer(name)
        here = [port for port in ports if port.group.tensor == name]
        if not here:
            outputs[name] = _read_resident(fabric, program, program.analysis.graph.result(name))
            continue
        shape = (invocations, *tensor.extents)
        collected = np.zeros(shape, dtype=tensor.type.dtype)
        for port in here:
            _collect_port(fabric, port, collected)
        outputs[name] = collected if invocations > 1 else collected[0, ...]
    return outputs


def _collect_port(fabric: Fabric, port: _Port, collected: AnyArray) -> None:
    side, position = port.order.side.port, port.order.position
    payload, control, _ = fabric.received(side, position, port.color)
    ends = np.flatnonzero(control)
    start = 0
    for n in range(len(collected)):
        if port.group.sparse:
            stop = int(ends[(n + 1) * port.order.chunk_count - 1]) + 1
        else:
            stop = start + wavelet_count(len(port.order.index), port.group)
        decode(port.order, payload[start:stop], control[start:stop], port.group, collected[n, ...])
        start = stop


def _read_resident(fabric: Fabric, program: WaferProgram, result: Results) -> AnyArray:
    """Gather an output that stays in PE memory from the PEs that hold it."""
    tensor = program.analysis.program.buffer(result.tensor)
    array = program.analysis.arrays[result.tensor]
    gathered = np.zeros(tensor.extents, dtype=tensor.type.dtype)
    for role in program.roles:
        if role.has(array.name):
            _gather(fabric, program, role, array, result, gathered)
    return gathered


def _gather(
    fabric: Fabric,
    program: WaferProgram,
    role: RoleProgram,
    array: LocalArray,
    result: Results,
    gathered: AnyArray,
) -> None:
    xs, ys = pes_of_role(program, role)
    x, y = role.origin
    data, known = fabric.read(xs + x, ys + y, role.offset(array.name), array.bytes)
    values = np.ascontiguousarray(data).view(array.type.dtype)
    words = np.asarray(known.reshape(len(xs), values.shape[1], -1).all(axis=2))
    coordinates: list[Integers] = local_elements(array, xs, ys)
    points = [np.broadcast_to(xs[:, None], values.shape), np.broadcast_to(ys[:, None], values.shape)]
    held = contains(result.owners.wrap(), [*points, *coordinates], {})
    if not words[held].all():
        raise PolyloomError(
            error("simulation-poison", f"an element of `{result.tensor}` was never written in PE memory")
        )
    put(gathered, [c[held] for c in coordinates], values[held])
