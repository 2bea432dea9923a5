"""A network on the simulated wafer: samples fed one behind the other, results of each collected.

Samples are invocations: each stage and each exchange goes through as many as there are samples, on its own
time, so that stages work on different samples at once. Source: docs/networks.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError
from polyloom.ir.relations import element_set
from polyloom.polyhedra.effort import naming
from polyloom.wafer.host.transfers import from_wavelet_bits, wavelet_bits
from polyloom.wafer.machine.instructions import table_text
from polyloom.wafer.mapping.grid import Grid
from polyloom.wafer.mapping.mapping import Mapping as LairMap
from polyloom.wafer.network.constants import computed_before, results_before
from polyloom.wafer.network.exchange import BUFFER
from polyloom.wafer.network.exchanges import Carried, Exchange
from polyloom.wafer.network.floor_plan import FloorPlan
from polyloom.wafer.network.program import NetworkProgram
from polyloom.wafer.network.tables import positions_of
from polyloom.wafer.pe_program.tree import RoleCode
from polyloom.wafer.roles.result import memory_fields
from polyloom.wafer.simulation.run import fault_of, load_memory
from polyloom.wafer.simulator.build import build_program
from polyloom.wafer.simulator.fabric import Fabric
from polyloom.wafer.simulator.result import Counts, Trace

AnyArray = npt.NDArray[np.generic]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkSimulation(Counts):
    """What came out and what it took. ``outputs``: name to array with a leading axis of samples.

    ``finished``: int64[samples], the cycle in which the last element of each sample left.
    """

    outputs: dict[str, AnyArray]
    finished: npt.NDArray[np.int64]
    trace: Trace | None = field(repr=False, default=None)

    @property
    def interval(self) -> float:
        """Cycles from one sample to the next, over the later half of the samples."""
        n = len(self.finished)
        first = (n - 1) // 2
        return float(self.finished[-1] - self.finished[first]) / max(n - 1 - first, 1) if n > 1 else 0.0


def simulate_network(
    network: NetworkProgram,
    inputs: Mapping[str, AnyArray],
    samples: int,
    *,
    trace_only: Sequence[tuple[int, int]] | None = None,
    max_cycles: int | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
) -> NetworkSimulation:
    """Run a compiled network.

    ``inputs``: an array for every input, streamed ones with a leading axis of samples. ``trace_only``: the
    PEs (x, y) of which is recorded what happens when; None: nothing is recorded.

    Raises PolyloomError ``simulation-...`` for everything that the strict simulator refuses.
    """
    plan = network.plan
    known = computed_before(plan.network.before, inputs, samples)
    inputs = {**inputs, **known}
    traced = trace_only is not None
    binary = build_program(network.files, table_text(), lines=traced)
    with Fabric(
        binary,
        network.machine,
        plan.width,
        plan.height,
        samples,
        trace=traced,
        trace_only=trace_only,
        max_cycles=max_cycles,
        threads=threads,
    ) as fabric:
        with naming("what the host sends to the PEs"):
            for place in plan.places:
                load_memory(fabric, place.block.placed.program, inputs, place.origin)
            for carried in network.carried:
                for exchange in carried.exchanges:
                    _load_tables(fabric, plan, exchange)
                    if exchange.held and carried.net.stream.state is not None:
                        _load_state(fabric, plan, exchange, inputs[carried.net.stream.state[0]])
            for carried in network.carried:
                _feed(fabric, network, carried, inputs, samples)
        _declare_sinks(fabric, network, samples)
        result = fabric.run(progress)
        if result.error is not None:
            raise PolyloomError(fault_of(result))
        outputs, finished = _collect(fabric, network, samples)
    outputs |= results_before(plan.network.before, known, samples)
    counts = {part.name: getattr(result, part.name) for part in fields(Counts)}
    return NetworkSimulation(**counts, outputs=outputs, finished=finished, trace=result.trace)


def _load_tables(fabric: Fabric, plan: FloorPlan, exchange: Exchange) -> None:
    for position, tables in exchange.tables.items():
        x, y = pe_of(plan, exchange, position)
        for name, table in tables.items():
            offset = _offset(exchange.code_at(position), name)
            _load(fabric, (x, y), offset, table)


def _load(fabric: Fabric, pe: tuple[int, int], offset: int, values: AnyArray) -> None:
    data = np.ascontiguousarray(values).view(np.uint8).reshape(1, -1)
    mask = np.ones((1, values.size), dtype=np.bool_)
    fabric.load([pe[0]], [pe[1]], offset, data, mask, values.itemsize)


def pe_of(plan: FloorPlan, exchange: Exchange, position: int) -> tuple[int, int]:
    """Return where the exchange at a position of a line is on the mesh."""
    (x0, _), (y0, _) = plan.place(exchange.line.stage).line_box(exchange.line)
    along = position - exchange.line.low
    return (x0 + along, y0) if exchange.line.is_row else (x0, y0 + along)


def _load_state(fabric: Fabric, plan: FloorPlan, exchange: Exchange, tensor: AnyArray) -> None:
    """Load what the first sample is given of a state."""
    values = np.asarray(tensor, dtype=exchange.line.group.type.dtype).reshape(-1)
    for order in exchange.held:
        own = values[tuple(order.element.T)]
        offset = _offset(exchange.code_at(order.position), BUFFER)
        _load(fabric, pe_of(plan, exchange, order.position), offset, own)


def _read_state(fabric: Fabric, plan: FloorPlan, exchange: Exchange, size: int, samples: int) -> AnyArray:
    """Return what came of a state in the last sample: it is in the buffer that was taken into last."""
    kind = exchange.line.group.type
    result = np.zeros(size, dtype=kind.dtype)
    buffer = samples % exchange.buffers if exchange.buffers > 1 else 0
    for order in exchange.held:
        x, y = pe_of(plan, exchange, order.position)
        start = _offset(exchange.code_at(order.position), BUFFER) + buffer * exchange.cells * kind.size
        data, _ = fabric.read([x], [y], start, len(order.element) * kind.size)
        result[tuple(order.element.T)] = np.ascontiguousarray(data).view(kind.dtype).reshape(-1)
    return result


def _offset(code: RoleCode, name: str) -> int:
    return next(field.offset for field in memory_fields(code) if field.name == name)


def _feed(
    fabric: Fabric,
    network: NetworkProgram,
    carried: Carried,
    inputs: Mapping[str, AnyArray],
    samples: int,
) -> None:
    net = carried.net
    if net.fed is None:
        return
    buffer = network.plan.network.buffer(net.stream.tensor)
    tensor = np.ascontiguousarray(inputs[net.stream.tensor], dtype=buffer.type.dtype).reshape(-1)
    payload = wavelet_bits(tensor, buffer.type)
    assert len(payload) == samples * carried.length
    control = np.zeros(len(payload), dtype=np.bool_)
    fabric.source("west", net.fed, network.colors.streams[net.stream.tensor], payload, control)


def _collect(
    fabric: Fabric, network: NetworkProgram, samples: int
) -> tuple[dict[str, AnyArray], npt.NDArray[np.int64]]:
    program = network.plan.network.program
    outputs: dict[str, AnyArray] = {}
    finished = np.zeros(samples, dtype=np.int64)
    for carried in network.carried:
        net = carried.net
        if net.stream.state is not None:
            _, new = net.stream.state
            flat = _read_state(fabric, network.plan, carried.exchanges[0], carried.positions.size, samples)
            outputs[new] = flat.reshape(program.buffer(new).extents)
        if net.taken is None:
            continue
        color = network.colors.streams[net.stream.tensor]
        payload, _, cycles = fabric.received("west", net.taken, color)
        values = from_wavelet_bits(payload, network.plan.network.buffer(net.stream.tensor).type)
        by_sample = values.reshape(samples, carried.length)
        finished = np.maximum(finished, cycles.reshape(samples, carried.length).max(axis=1))
        for name, elements in net.stream.results:
            shape = program.buffer(name).extents
            grid = np.argwhere(np.ones(shape, dtype=np.bool_))
            order = positions_of(grid, elements, carried.positions)
            outputs[name] = by_sample[:, order].reshape(samples, *shape)
    return {name: outputs[name] for name in program.outputs}, finished


def _declare_sinks(fabric: Fabric, network: NetworkProgram, samples: int) -> None:
    """Say where results leave, and how many wavelets are expected."""
    for carried in network.carried:
        if carried.net.taken is not None:
            color = network.colors.streams[carried.net.stream.tensor]
            fabric.sink("west", carried.net.taken, color, carried.length * samples)


def moving_tensors(plan: FloorPlan) -> LairMap:
    """Return what the host sends and takes in each invocation, as the map of a layer says it."""
    program, state = plan.network.program, plan.network.state
    before = None if plan.network.before is None else plan.network.before.program
    computed = () if before is None else before.outputs

    def same(names: tuple[str, ...]) -> dict[str, isl.Map]:
        owner = dict.fromkeys(computed, before or program)
        return {n: element_set(owner.get(n, program).buffer(n)).identity() for n in names}

    return LairMap(
        grid=Grid(plan.width, plan.height),
        placement={},
        inputs=same(plan.network.streamed),
        outputs=same(tuple(n for n in (*program.outputs, *computed) if n not in dict(state).values())),
        sparse=(),
        state=state,
        trigger={},
        spans={},
    )
