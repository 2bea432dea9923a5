"""Moves: internal tensors that are read on other PEs than those that have them travel along rows and columns.

An element goes along the row of the PE that has it to the columns in which it is read, then along each of
these columns to the rows. PEs where it turns keep it as well. All PEs of a line deal with its elements in
one order, so that nobody waits in a ring; where elements go a few steps only, in phases: PEs that are far
enough apart send at the same time. What one PE has for a whole line goes by routers (``broadcasts``).
Not in the papers: they store internal tensors in memory (dtg_codegen, Sec. 4.3); how they come there is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from polyloom.ir.types import ElementType
from polyloom.polyhedra.binding import PE_PARAMETERS, bind_domain
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.simplify import with_explicit_divs
from polyloom.wafer.dataflow.line_traffic import link_queue, neighbour_queue, passing, split_by_targets
from polyloom.wafer.mapping.grid import Grid, Side


@dataclass(frozen=True)
class Step:
    """One way into or out of a PE: its memory (0), the neighbour on the low (-1) or on the high side (1).

    2: the whole line, to whose PEs routers copy what one of them sends.
    """

    towards: int


MEMORY, LOW, HIGH, LINE = Step(0), Step(-1), Step(1), Step(2)


@dataclass(frozen=True, eq=False)
class MoveKind:
    """``items``: ``{ PE[x, y] -> t[i] }``: elements that come from, and go to, the same places in a phase."""

    origin: Step
    targets: tuple[Step, ...]
    items: isl.Map
    phase: int

    @cached_property
    def pes(self) -> isl.Set:
        """The PEs that do it: ``{ PE[x, y] }``."""
        return with_explicit_divs(self.items.domain())

    def here(self) -> isl.Set:
        """Return ``[PE_X, PE_Y] -> { t[i] }``."""
        return bind_domain(self.items, PE_PARAMETERS)


@dataclass(frozen=True, eq=False, kw_only=True)
class Move:
    """A tensor's way along all rows, or along all columns: ``high``: the east or the south.

    ``sources``, ``sinks``: ``{ PE[x, y] -> t[i] }``: who has elements before, and who gets them.
    ``link``: the name of what routers copy along each line; empty where PEs pass elements on.
    """

    tensor: str
    type: ElementType
    high: Side
    sources: isl.Map
    sinks: isl.Map
    kinds: tuple[MoveKind, ...]
    link: str = ""

    @property
    def phases(self) -> int:
        """How many parts its elements go in, one after the other."""
        return 1 + max(kind.phase for kind in self.kinds)

    @property
    def low(self) -> Side:
        """The west or the north."""
        return self.high.opposite

    @property
    def name(self) -> str:
        """A name that is unique among the moves and chains of a PE."""
        return f"{self.tensor}_along_{'rows' if self.high is Side.EAST else 'columns'}"

    @property
    def leaves(self) -> bool:
        """Moves stay in the rectangle; chains may leave it."""
        return False

    def side(self, step: Step) -> Side:
        """Return on which side the neighbour of a step is."""
        return self.high if step == HIGH else self.low

    def queue(self, step: Step, *, incoming: bool) -> str:
        """Return the name of a queue."""
        if step == LINE:
            return link_queue(self.link, incoming=incoming)
        return neighbour_queue(self.side(step), incoming=incoming)


def moves_of(
    tensor: str, element: ElementType, grid: Grid, owners: isl.Map, needed: isl.Map
) -> tuple[Move, ...]:
    """Return the moves that bring ``needed`` from ``owners``, both ``{ PE[x, y] -> t[i] }``."""
    if needed.is_empty():
        return ()
    missing = with_explicit_divs(needed.subtract(owners))
    if missing.is_empty():
        return ()
    source = _first_owner(owners)
    pairs = source.range_product(missing.reverse())
    corner = isl.Map("{ [PE[xs, ys] -> PE[x, y]] -> PE[x, ys] }")
    corners = with_explicit_divs(pairs.apply_range(corner))
    moved = with_explicit_divs(corners.subtract(source))
    rows = _move(tensor, element, grid, Side.EAST, source.reverse(), moved.reverse())
    left = with_explicit_divs(missing.subtract(corners.reverse()))
    columns = _move(tensor, element, grid, Side.SOUTH, corners.reverse(), left)
    return tuple(move for move in (rows, columns) if move.kinds)


def _first_owner(owners: isl.Map) -> isl.Map:
    """Return ``{ t[i] -> PE[x, y] }``: one PE that has each element.

    Where there is only one, the relation stays as it is written: a minimum would add divisions to it.
    """
    found = owners.reverse()
    return found if found.is_single_valued() else found.lexmin().coalesce()


def _move(
    tensor: str, element: ElementType, grid: Grid, high: Side, sources: isl.Map, sinks: isl.Map
) -> Move:
    """Keep the elements that go anywhere on their line, and say what each PE does with them."""
    lower, higher = grid.towards(high.opposite), grid.towards(high)
    line = lower.union(higher)
    moving = with_explicit_divs(sources.intersect(line.apply_range(sinks)))
    phases = _phases(moving, sinks.intersect(line.apply_range(sources)), high)
    sinks = with_explicit_divs(sinks)
    kinds = tuple(k for n, moved in enumerate(phases) for k in _kinds(n, moved, sinks, lower, higher))
    return Move(tensor=tensor, type=element, high=high, sources=moving, sinks=sinks, kinds=kinds)


MOST_PHASES = 16
"""Each has code of its own; without phases, the time grows with the length of the line."""


def _phases(sources: isl.Map, sinks: isl.Map, high: Side) -> tuple[isl.Map, ...]:
    """Split ``{ PE[x, y] -> t[i] }`` so that those of one part do not meet, where that takes a few parts.

    With steps of at most ``a`` in one direction and ``b`` in the other, elements of PEs ``a + b + 1`` apart
    do not meet.
    """
    if sources.is_empty():
        return (sources,)
    here, there, same = ("x", "x1", "y") if high is Side.EAST else ("y", "y1", "x")
    steps = isl.Map(f"{{ [PE[x, y] -> PE[x1, y1]] -> [{there} - {here}] : {same} = {same}1 }}")
    pairs = sources.reverse().range_product(sinks.reverse())
    ((low, most),) = integer_bounds(pairs.apply_range(steps).range())
    period = max(most, 0) - min(low, 0) + 1
    ((first, last),) = integer_bounds(sources.domain().apply(isl.Map(f"{{ PE[x, y] -> [{here}] }}")))
    if period > MOST_PHASES or last - first < period:
        return (sources,)
    parts = (isl.Set(f"{{ PE[x, y] : {here} mod {period} = {n} }}") for n in range(period))
    return tuple(sources.intersect_domain(part).coalesce() for part in parts)


def _kinds(
    phase: int, sources: isl.Map, every_sink: isl.Map, lower: isl.Map, higher: isl.Map
) -> Iterator[MoveKind]:
    sinks = every_sink.intersect_range(sources.range())
    if sinks.is_empty():
        return
    along = passing(sources, sinks, lower, higher)
    origins = {MEMORY: sources, LOW: along.from_low, HIGH: along.from_high}
    targets = {MEMORY: sinks, LOW: along.to_low, HIGH: along.to_high}
    for origin, chosen, items in split_by_targets(origins, targets):
        yield MoveKind(origin, chosen, items, phase)
