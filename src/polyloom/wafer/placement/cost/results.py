"""What becomes of a result under a layout, in cycles: added up across PEs, moved to its readers, sent away.

Slices of tensors are compared: what a PE computes of a tensor with what the same PE reads of it. An estimate
by box arithmetic, as ``estimate``; the routes and the code of the chosen layouts are made elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from polyloom.ir.host import View
from polyloom.ir.statements import Statement
from polyloom.wafer.dataflow.transfers import MOST_PHASES
from polyloom.wafer.machine.instruction_cost import store_cycles
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.placement.boxes import LocalBox, Movement, box_extents, elements, local_box
from polyloom.wafer.placement.classes import written_iterators
from polyloom.wafer.placement.coordinates import Coordinate, Place
from polyloom.wafer.placement.cost.latency import phases_latency


def result_cycles(
    statement: Statement, place: Place, box: LocalBox, movement: Movement, machine: Machine
) -> float:
    """Return what becomes of a statement's result, moves aside; ``box``: its instances on a PE."""
    size = elements(statement.write, box)
    stage = _stage(machine)
    cycles = 0.0
    for coordinate in (place.x, place.y):
        if _adds_up(statement, coordinate):
            cycles += size + stage * coordinate.last
    if statement.write.buffer in movement.leaving:
        cycles += _leaving(statement, place, movement, machine) + stage
    return cycles


@dataclass(frozen=True)
class Reader:
    """A statement that reads a result, and where it is; ``box``: its instances on a PE."""

    statement: Statement
    access: View
    place: Place
    box: LocalBox


def move_cycles(statement: Statement, place: Place, box: LocalBox, reader: Reader, machine: Machine) -> float:
    """Return what moving a statement's result to one of its readers takes."""
    return sum(_moves(statement, place, box, reader, machine))


def _stage(machine: Machine) -> int:
    return 2 * machine.ramp_latency + machine.hop_latency + machine.simd_launch


def _each(machine: Machine) -> int:
    """Return the cycles of an element that is passed on by itself, not by an instruction."""
    passed = machine.loop_iteration + machine.branch + machine.scalar_load + machine.receive + machine.send
    return passed + store_cycles(machine)


def _adds_up(statement: Statement, coordinate: Coordinate) -> bool:
    """Whether PEs along an axis compute parts of the same elements: ``y[i] +=`` over j, ``dx[w + r]``."""
    kept = written_iterators(statement)
    cut = [t.iterator for t in coordinate.tiles if t.count > 1]
    return any(k not in kept or _overlaps(statement, k) for k in cut)


def _overlaps(statement: Statement, iterator: int | None) -> bool:
    indices = [i.coefficients for i in statement.write.affine]
    return iterator is not None and any(c[iterator] and sum(map(bool, c)) > 1 for c in indices)


def _leaving(statement: Statement, place: Place, movement: Movement, machine: Machine) -> float:
    """Return the cycles of sending a result away; a sparse one is looked at element by element."""
    lines = min(elements(statement.write, local_box(statement, c)) for c in (place.x, place.y))
    if statement.write.buffer not in movement.sparse:
        return lines
    own = elements(statement.write, local_box(statement, place.x, place.y))
    return lines + own * _each(machine)


# Moves.


@dataclass(frozen=True, kw_only=True)
class _Slice:
    """Of a dimension of a tensor: tile t has ``extent`` elements from ``start + t * step`` on.

    ``apart``: PEs from one tile to the next.
    """

    dim: int
    start: int
    step: int
    extent: int
    apart: int


def _slices(statement: Statement, access: View, coordinate: Coordinate) -> Iterator[_Slice]:
    box = local_box(statement, coordinate)
    extents = box_extents(access, box)
    for tile in coordinate.tiles:
        for d, index in enumerate(access.affine):
            c = 0 if tile.iterator is None or tile.count == 1 else index.coefficients[tile.iterator]
            if c:
                step = c * (1 if tile.cycle else tile.size)
                yield _Slice(dim=d, start=index.constant, step=step, extent=extents[d], apart=tile.step)


def _moves(
    statement: Statement, place: Place, box: LocalBox, reader: Reader, machine: Machine
) -> Iterator[float]:
    """Yield the cycles of moving what one read needs, along each axis: rows first, all that a column needs.

    A PE takes what it passes on, and gives it; where elements go both ways it waits for both (``passing``).
    What one PE has for all of a line is copied by routers.
    """
    access, other = reader.access, reader.place
    own, needed = elements(statement.write, box), elements(access, reader.box)
    for own_line, line, served in ((place.x, other.x, (other.x,)), (place.y, other.y, (other.x, other.y))):
        here = set(_slices(statement, statement.write, own_line))
        there = set(_slices(reader.statement, access, line))
        last = max(own_line.last, line.last)
        way = float(_stage(machine) * last)
        everywhere = any(t.count > 1 for t in line.tiles) and not there
        taken = max(own, elements(access, local_box(reader.statement, *served)))
        if {(s.dim, s.step, s.apart) for s in here} != {(s.dim, s.step, s.apart) for s in there}:
            yield 2 * way + taken * _each(machine) if here else way + 2 * taken
        elif here != there:
            phases = 1 + _reach(here, there)
            if phases <= min(last, MOST_PHASES):
                way = phases_latency(phases, machine)
            yield way + 2 * max(0, needed - own) * _each(machine)
        elif everywhere or (not here and own_line.constant != line.constant):
            yield machine.hop_latency * last + _stage(machine) + taken


def _reach(here: Iterable[_Slice], there: Iterable[_Slice]) -> int:
    """Return how many PEs away the elements of a tile of ``there`` are at most, both sides together."""
    by_dim = {s.dim: s for s in here}
    reach = 0
    for s in there:
        own, size = by_dim[s.dim], abs(s.step)
        below, above = own.start - s.start, s.start + s.extent - own.start - own.extent
        reach += s.apart * (max(0, math.ceil(below / size)) + max(0, math.ceil(above / size)))
    return reach
