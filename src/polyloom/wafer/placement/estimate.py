"""A first guess of a layout's cycles by box arithmetic: it ranks thousands of layouts before any is compiled.

What a PE does is a box of instances: its extents are the tile sizes. Boxes give the work, the elements that
arrive, what is sent and the memory. The compiled code of the best few is priced by ``cost_model``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from polyloom.ir.program import Access, Program, Statement
from polyloom.wafer.matching import match_instruction
from polyloom.wafer.placement.classes import accesses, written_iterators
from polyloom.wafer.placement.coordinates import Coordinate, Place
from polyloom.wafer.simulator.machine import Machine

_LOOP_OPERATIONS = 6
"""Scalar operations of one instance in a loop, apart from loads, stores and the loop itself: a guess."""


@dataclass(frozen=True)
class Wishes:
    """What is known before the ports: which tensors move. ``leaving``: outputs with ports."""

    streamed: tuple[str, ...]
    leaving: tuple[str, ...]
    sparse: tuple[str, ...]


@dataclass(frozen=True)
class Guess:
    """``memory``: the local arrays of a PE in bytes, by tensor; ``pes``: size of the rectangle."""

    cycles: float
    memory: tuple[tuple[str, int], ...]
    pes: int

    @property
    def bytes(self) -> int:
        """Bytes of all local arrays."""
        return sum(size for _, size in self.memory)


def guess(program: Program, places: Sequence[Place], wishes: Wishes, machine: Machine) -> Guess:
    """Return what a layout might cost."""
    width, height = extent_of(places)
    cycles = 0.0
    for statement, place in zip(program.statements, places, strict=True):
        cycles += _statement_cycles(program, statement, place, wishes, machine)
        cycles += _result_cycles(program, statement, place, places, wishes, machine)
    memory = tuple(_memory(program, places, wishes))
    return Guess(cycles + width + height, memory, width * height)


def extent_of(places: Sequence[Place]) -> tuple[int, int]:
    """Return the smallest rectangle that holds the instances: columns, rows."""
    return 1 + max(p.x.last for p in places), 1 + max(p.y.last for p in places)


def local_extents(statement: Statement, *coordinates: Coordinate) -> list[int]:
    """Return how many values of each iterator are on one PE, or on all that agree in some coordinates."""
    extents = list(statement.domain)
    for coordinate in coordinates:
        for tile in coordinate.tiles:
            used = [k for k, c in enumerate(tile.expression.coefficients) if c]
            if len(used) == 1:
                extents[used[0]] = min(extents[used[0]], tile.size)
            elif used:  # a diagonal: as if the last iterator alone were cut
                extents[used[-1]] = max(1, min(extents[used[-1]], tile.size))
    return extents


def elements(access: Access, extents: Sequence[int]) -> int:
    """Return the size of the box that a box of instances accesses."""
    return math.prod(
        1 + sum(abs(c) * (n - 1) for c, n in zip(i.coefficients, extents, strict=True))
        for i in access.indices
    )


def _statement_cycles(
    program: Program, statement: Statement, place: Place, wishes: Wishes, machine: Machine
) -> float:
    extents = local_extents(statement, place.x, place.y)
    work = math.prod(extents)
    moving = [a for a in statement.reads if a.tensor in wishes.streamed]
    driven = [_driven(statement, a, place, work, extents, wishes, machine) for a in moving]
    stored = [_arriving(statement, a, place) for a in moving]
    if not driven:
        return _vector(statement, work, frozenset(), machine)
    best = min(range(len(driven)), key=lambda k: driven[k])
    return driven[best] + sum(count for k, count in enumerate(stored) if k != best)


def _driven(
    statement: Statement,
    access: Access,
    place: Place,
    work: int,
    extents: Sequence[int],
    wishes: Wishes,
    machine: Machine,
) -> float:
    """Return the cycles where a stream drives the statement: what arrives, and one event for each element."""
    arriving, used = _arriving(statement, access, place), elements(access, extents)
    position = frozenset({statement.reads.index(access)})
    sparse = access.tensor in wishes.sparse
    each = machine.data_task_dispatch if sparse else machine.loop_iteration + machine.receive
    if not sparse and work == used and match_instruction(statement, frozenset()) is not None:
        return float(arriving)
    return arriving * each + min(used, work) * _vector(statement, max(1.0, work / used), position, machine)


def _arriving(statement: Statement, access: Access, place: Place) -> int:
    """Return how many elements reach a PE: what its row needs, or its column, whichever is less."""
    return min(elements(access, local_extents(statement, c)) for c in (place.x, place.y))


def _vector(statement: Statement, work: float, scalars: frozenset[int], machine: Machine) -> float:
    """Return the cycles of some instances in a row: one instruction, or a loop."""
    match = match_instruction(statement, scalars) if work > 1 else None
    if match is not None:
        width = machine.simd_width(match.instruction.name)
        return machine.simd_launch + 2 * machine.set_base_address + math.ceil(work / width)
    loads = len(statement.reads) * machine.scalar_load
    return work * (loads + machine.scalar_store + _LOOP_OPERATIONS + machine.loop_iteration)


def _result_cycles(
    program: Program,
    statement: Statement,
    place: Place,
    places: Sequence[Place],
    wishes: Wishes,
    machine: Machine,
) -> float:
    """Return what becomes of the result: added up across PEs, moved to its readers, sent away."""
    size = elements(statement.write, local_extents(statement, place.x, place.y))
    kept = written_iterators(statement)
    stage = 2 * machine.ramp_latency + machine.hop_latency + machine.simd_launch
    cycles = 0.0
    for coordinate in (place.x, place.y):
        summed = [t for t in coordinate.tiles if t.count > 1 and t.iterator not in kept]
        if summed:
            cycles += size + stage * coordinate.last
    if statement.write.tensor in wishes.leaving:
        lines = (elements(statement.write, local_extents(statement, c)) for c in (place.x, place.y))
        cycles += min(lines) + stage
    for reader, other in zip(program.statements, places, strict=True):
        if any(a.tensor == statement.write.tensor for a in reader.reads):
            cycles += _move_cycles(statement, place, reader, other, size, stage)
    return cycles


def _move_cycles(
    statement: Statement, place: Place, reader: Statement, other: Place, size: int, stage: int
) -> float:
    """Return the cycles of moving a result to where it is read; 0 where the tiles agree."""
    cycles = 0.0
    for mine, theirs in ((place.x, other.x), (place.y, other.y)):
        here = {(d, t.size) for t in mine.tiles if t.count > 1 for d in _dims(statement.write, t.iterator)}
        for access in reader.reads:
            if access.tensor == statement.write.tensor:
                there = {(d, t.size) for t in theirs.tiles if t.count > 1 for d in _dims(access, t.iterator)}
                spread = any(t.count > 1 and not _dims(access, t.iterator) for t in theirs.tiles)
                if here != there or spread:
                    cycles += size * max(1, mine.last) + stage * max(mine.last, theirs.last)
    return cycles


def _dims(access: Access, iterator: int | None) -> list[int]:
    if iterator is None:
        return []
    return [d for d, index in enumerate(access.indices) if index.coefficients[iterator]]


def _memory(program: Program, places: Sequence[Place], wishes: Wishes) -> Iterator[tuple[str, int]]:
    """Yield the bytes of each tensor on a PE: the largest box of its accesses. Drivers are not stored."""
    for tensor in program.tensors:
        sizes = [0]
        for statement, place in zip(program.statements, places, strict=True):
            moving = [a.tensor for a in statement.reads if a.tensor in wishes.streamed]
            for access in accesses(statement):
                if access.tensor == tensor.name and moving != [tensor.name]:
                    sizes.append(elements(access, local_extents(statement, place.x, place.y)))
        if max(sizes):
            yield tensor.name, max(sizes) * tensor.type.size
