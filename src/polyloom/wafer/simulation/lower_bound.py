"""A lower bound on the cycles of a layer that does not depend on the code that is emitted for it.

Source: docs/interface.md (JSON of simulate): the largest over PEs of SIMD cycles plus unavoidable dispatch,
over links of wavelets, plus the longest path's latency.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.ir.host import View
from polyloom.ir.types import ElementType
from polyloom.polyhedra.functions import function_of
from polyloom.polyhedra.vectorized import Integers, evaluate_function
from polyloom.wafer.dataflow.tasks import ComputeTask
from polyloom.wafer.host.transfers import PortOrder, encode, port_orders
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.program.port_groups import PortGroup
from polyloom.wafer.program.wafer_program import WaferProgram
from polyloom.wafer.simd.decision import SimdAnalysis

AnyArray = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Limit:
    """``cycles`` that no code for this layer, map and data can beat; ``by``: what sets them."""

    cycles: int
    by: str


def limit_of(
    program: WaferProgram,
    inputs: Mapping[str, AnyArray],
    invocations: int,
    wavelet_elements: int | None = None,
) -> Limit:
    """Return the largest of the bounds: the busiest PE, the busiest link, the longest path.

    ``wavelet_elements``: of 16 bits that a wavelet of a dense stream may hold, in place of the machine's.
    """
    together = wavelet_elements or program.machine.wavelet_elements
    bounds = [
        _compute_bound(program, inputs, invocations, together),
        *_link_bounds(program, inputs, invocations, together),
    ]
    return max(bounds, key=lambda b: b.cycles, default=Limit(0, "nothing"))


def _compute_bound(
    program: WaferProgram, inputs: Mapping[str, AnyArray], invocations: int, together: int
) -> Limit:
    """The SIMD cycles of the busiest PE at the instructions' full width, and what taking elements costs.

    Every element of a sparse stream that is sent and has instances on a PE starts a task there, and
    instances of zeros that are not sent do not run. A wavelet of a dense stream takes a cycle, in which one
    instance of each of its elements (``together`` of 16 bits at most) may be executed. All statements share
    a PE; those that one stream drives share its elements.
    """
    machine = program.machine
    executing: dict[str, Integers] = {}
    taking: dict[str, Integers] = {}
    started: dict[str, Integers] = {}
    for analysis in program.analysis.simd:
        task = analysis.task
        instances, arrivals = _work_per_pe(program, task, inputs, invocations)
        dense = task.stream is not None and not task.stream.sparse
        cycles = -(-(instances - arrivals * dense) // _width(machine, analysis))
        _raise_to(executing, task.statement.name, cycles)
        if task.stream is not None:
            held = _held(task.stream.type, together) if dense else 1
            each = 1 if dense else machine.data_task_dispatch
            cost = -(-arrivals // held) * each
            _raise_to(taking if dense else started, task.stream.tensor, cost)
    total = _total([*executing.values(), *taking.values(), *started.values()])
    busiest = int(total.argmax())
    pairs = int((_total(list(started.values())) + 0 * total)[busiest])
    chosen = f", {pairs} of them to start a task for each pair, which our code chooses" if pairs else ""
    computing = ", ".join(f"`{name}`" for name in executing)
    return Limit(int(total[busiest]), f"computation of {computing}{chosen}")


def _total(parts: list[Integers]) -> Integers:
    return sum(parts, start=np.zeros(1, dtype=np.int64))


def _held(element: ElementType, together: int) -> int:
    """Return how many elements of a dense stream a wavelet may hold."""
    return together if element.size == 2 else 1


def _raise_to(known: dict[str, Integers], name: str, cycles: Integers) -> None:
    """Tasks of one name look at the same instances, or the same elements: the longest counts."""
    known[name] = np.maximum(known[name], cycles) if name in known else cycles


def _width(machine: Machine, analysis: SimdAnalysis) -> int:
    if analysis.match is None:
        return max(machine.simd_widths.values(), default=1)
    return machine.simd_width(analysis.match.instruction.name)


_BLOCK = 2**18
"""Points that are looked at together: large layers have more than memory has room for."""


def _points(domain: tuple[int, ...]) -> Iterator[Integers]:
    """Yield all points of a box in blocks: int64[rank, n]."""
    count = math.prod(domain)
    for start in range(0, count, _BLOCK):
        numbers = np.arange(start, min(start + _BLOCK, count), dtype=np.int64)
        rows = np.unravel_index(numbers, domain) if domain else ()
        yield np.array(rows, dtype=np.int64).reshape(len(domain), len(numbers))


def _work_per_pe(
    program: WaferProgram, task: ComputeTask, inputs: Mapping[str, AnyArray], invocations: int
) -> tuple[Integers, Integers]:
    """Return, for each PE, the instances that run and the elements that arrive for them."""
    relation, domain = program.analysis.mapping.placement[task.statement.name], task.statement.domain
    placement, grid = function_of(relation), program.analysis.mapping.grid
    instances = np.zeros(grid.width * grid.height, dtype=np.int64)
    sent = _times_sent(program, task, inputs, invocations)
    pairs = [np.zeros(0, dtype=np.int64)]
    looked_at = domain
    if sent is None or task.trigger is None:
        looked_at = _deciding(placement.gist(relation.domain()), domain)
    alike = math.prod(domain) // max(1, math.prod(looked_at))
    for points in _points(looked_at):
        (xs, ys), _ = evaluate_function(placement, list(points), {})
        pe = np.broadcast_to(ys * grid.width + xs, points.shape[1:])
        if sent is None or task.trigger is None:
            instances += np.bincount(pe, minlength=len(instances)) * (alike * invocations)
            continue
        element = _element_number(task.statement.reads[task.trigger], points, sent.shape)
        instances += np.bincount(pe, sent.ravel()[element], len(instances)).astype(np.int64)
        pairs.append(np.unique(pe * sent.size + element))
    if sent is None:
        return instances, np.zeros_like(instances)
    pe, element = np.divmod(np.unique(np.concatenate(pairs)), sent.size)
    return instances, np.bincount(pe, sent.ravel()[element], len(instances)).astype(np.int64)


def _deciding(placement: isl.PwMultiAff, domain: tuple[int, ...]) -> tuple[int, ...]:
    """Return the domain with one value only of each iterator that does not decide where an instance is."""
    decides = (placement.involves_dims(isl.dim_type.in_, k, 1) for k in range(len(domain)))
    return tuple(n if d else min(n, 1) for n, d in zip(domain, decides, strict=True))


def _times_sent(
    program: WaferProgram, task: ComputeTask, inputs: Mapping[str, AnyArray], invocations: int
) -> Integers | None:
    """Return how often each element of the stream that drives a task is sent; None without one."""
    if task.stream is None:
        return None
    shape = program.analysis.program.buffer(task.stream.tensor).extents
    if not task.stream.sparse:
        return np.full(shape, invocations, dtype=np.int64)
    batch = inputs[task.stream.tensor].reshape(invocations, *shape)
    return np.asarray(np.count_nonzero(batch, axis=0), dtype=np.int64)


def _element_number(access: View, points: Integers, shape: tuple[int, ...]) -> Integers:
    """Return the row-major number of the element that each point accesses."""
    number = np.zeros(points.shape[1:], dtype=np.int64)
    for index, extent in zip(access.affine, shape, strict=True):
        value = np.full(points.shape[1:], index.constant, dtype=np.int64)
        for k, coefficient in enumerate(index.coefficients):
            value += coefficient * points[k]
        number = number * extent + value
    return number


def _link_bounds(
    program: WaferProgram, inputs: Mapping[str, AnyArray], invocations: int, together: int
) -> Iterator[Limit]:
    """The wavelets that one port must pass, one a cycle, and the way to the nearest and farthest PE."""
    grid = program.analysis.border.given.grid
    hop = program.machine.hop_latency
    for group in program.inputs:
        for order in port_orders(group.ports, group.side, grid.positions(group.side)):
            tensor = inputs[group.tensor]
            batch = tensor if invocations > 1 else tensor[None]
            count = sum(_wavelets(order, batch[n], group, together) for n in range(invocations))
            yield Limit(count + hop, f"the link that brings `{group.tensor}` to port {order.position}")
    for group in program.outputs:
        if group.sparse:
            continue
        for order in port_orders(group.ports, group.side, grid.positions(group.side)):
            count = -(-len(order.index) // _held(group.type, together)) * invocations
            yield Limit(count + hop, f"the link that takes `{group.tensor}` to port {order.position}")


def _wavelets(order: PortOrder, tensor: AnyArray, group: PortGroup, together: int) -> int:
    """Return how many wavelets a port needs for one invocation."""
    if group.sparse:
        return len(encode(order, tensor, group)[0])
    return -(-len(order.index) // _held(group.type, together))
