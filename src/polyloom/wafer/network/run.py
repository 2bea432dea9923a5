"""A network on the simulated wafer: samples fed one behind the other, results of each collected.

Samples are invocations: each stage and each exchange goes through as many as there are samples, on its own
time, so that stages work on different samples at once. Source: docs/networks.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

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
from polyloom.wafer.network.exchanges import Carried, Exchange
from polyloom.wafer.network.floor_plan import FloorPlan
from polyloom.wafer.network.program import NetworkProgram
from polyloom.wafer.network.tables import positions_of
from polyloom.wafer.pe_program.tree import RoleCode
from polyloom.wafer.roles.result import memory_fields
from polyloom.wafer.simulation.run import fault_of, load_memory
from polyloom.wafer.simulator.build import build_program
from polyloom.wafer.simulator.fabric import Fabric
from polyloom.wafer.simulator.result import Counts

AnyArray = npt.NDArray[np.generic]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkSimulation(Counts):
    """What came out and what it took. ``outputs``: name to array with a leading axis of samples.

    ``finished``: int64[samples], the cycle in which the last element of each sample left.
    """

    outputs: dict[str, AnyArray]
    finished: npt.NDArray[np.int64]

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
    max_cycles: int | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
) -> NetworkSimulation:
    """Run a compiled network.

    ``inputs``: an array for every input, streamed ones with a leading axis of samples.

    Raises PolyloomError ``simulation-...`` for everything that the strict simulator refuses.
    """
    plan = network.plan
    binary = build_program(network.files, table_text())
    with Fabric(
        binary,
        network.machine,
        plan.width,
        plan.height,
        samples,
        max_cycles=max_cycles,
        threads=threads,
    ) as fabric:
        with naming("what the host sends to the PEs"):
            for place in plan.places:
                load_memory(fabric, place.block.placed.program, inputs, place.origin)
            for exchange in network.exchanges:
                _load_tables(fabric, plan, exchange)
            for carried in network.carried:
                _feed(fabric, network, carried, inputs, samples)
        _declare_sinks(fabric, network, samples)
        result = fabric.run(progress)
        if result.error is not None:
            raise PolyloomError(fault_of(result))
        outputs, finished = _collect(fabric, network, samples)
    counts = {part.name: getattr(result, part.name) for part in fields(Counts)}
    return NetworkSimulation(**counts, outputs=outputs, finished=finished)


def _load_tables(fabric: Fabric, plan: FloorPlan, exchange: Exchange) -> None:
    (x0, _), (y0, _) = plan.place(exchange.line.stage).line_box(exchange.line)
    for position, tables in exchange.tables.items():
        ends = exchange.last is not None and position == exchange.line.high
        code = exchange.last if ends and exchange.last is not None else exchange.code
        along = position - exchange.line.low
        x, y = (x0 + along, y0) if exchange.line.is_row else (x0, y0 + along)
        for name, table in tables.items():
            data = np.ascontiguousarray(table).view(np.uint8).reshape(1, -1)
            mask = np.ones((1, table.size), dtype=np.bool_)
            fabric.load([x], [y], _offset(code, name), data, mask, table.itemsize)


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
        if net.taken is None:
            continue
        color = network.colors.streams[net.stream.tensor]
        payload, _, cycles = fabric.received("west", net.taken, color)
        values = from_wavelet_bits(payload, program.buffer(net.stream.tensor).type)
        by_sample = values.reshape(samples, carried.length)
        finished = np.maximum(finished, cycles.reshape(samples, carried.length).max(axis=1))
        for name, elements in net.stream.results:
            shape = program.buffer(name).extents
            grid = np.indices(shape, dtype=np.int64).reshape(len(shape), -1).T
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
    program = plan.network.program

    def same(names: tuple[str, ...]) -> dict[str, isl.Map]:
        return {n: element_set(program.buffer(n)).identity() for n in names}

    return LairMap(
        grid=Grid(plan.width, plan.height),
        placement={},
        inputs=same(plan.network.streamed),
        outputs=same(program.outputs),
        sparse=(),
        state=(),
        trigger={},
        spans={},
    )
