"""Tiles across time: trapezoids of rows over blocks of steps, and the proof that they may run at once.

    step 2    1 1 2 2 2 2 2 1 1 1 1 2 2 2 2 2 1     of a block of steps first the trapezoids 1, all at once,
    step 1    1 1 1 2 2 2 1 1 1 1 1 1 2 2 2 1 1     then the trapezoids 2 between them, all at once
    step 0    1 1 1 1 2 1 1 1 1 1 1 1 1 2 1 1 1
              rows

What a row in a trapezoid 1 needs is there too, or in an earlier block of steps: so steep are its sides. How
far rows that meet in an element are apart is computed from sets, over all points; what is made of that is
proved against the same sets.

Source: Grosser et al., Split tiling for GPUs, 2013 (idea). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from polyloom.polyhedra.bounds import greatest_value, least_value
from polyloom.polyhedra.functions import isl_integer
from polyloom.polyhedra.loops.scope import Scope
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

_DIM = isl.dim_type
Terms = list[tuple[int, IntExpression]]
"""Coefficients and what they belong to: a sum."""
Rows = isl.Set
"""``{ [t, r] }``: steps, and rows along an axis."""
STEEPEST = 32
"""Rows that a side may move in a step; more of them leave no room for steps."""
LAST_APART = 3
"""Steps apart that are looked at one by one; rows that meet after more of them count as after so many."""


@dataclass(frozen=True)
class Touch:
    """An element that each point of a sweep reads, or stores."""

    array: str
    subscripts: tuple[IntExpression, ...]
    is_store: bool


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """All points of a rectangle, which no one of them needs another of.

    ``rows``: along each axis, in which row a point is: over ``iterators``.
    """

    iterators: tuple[str, ...]
    extents: tuple[int, ...]
    touches: tuple[Touch, ...]
    rows: tuple[IntExpression, ...]


@dataclass(frozen=True, kw_only=True)
class Steps:
    """``sweeps`` one after another, for ``time`` from ``first`` to before ``first + count``."""

    time: str
    first: int
    count: int
    sweeps: tuple[Sweep, ...]


@dataclass(frozen=True)
class Meeting:
    """``{ [t, r] -> [t', r'] }``: rows of two sweeps, by number, that meet in an element one of them stores.

    The source is before the sink: in an earlier step, or in the same one and an earlier sweep.
    """

    source: int
    sink: int
    relation: isl.Map


@dataclass(frozen=True)
class Side:
    """Where a side of a trapezoid is in each sweep of the first step, and how far it moves in a step."""

    offsets: tuple[int, ...]
    rise: int


def _is_upright(side: Side) -> bool:
    return not side.rise and not any(side.offsets)


@dataclass(frozen=True, kw_only=True)
class Trapezoids:
    """Blocks of ``height`` steps and ``width`` rows; ``count`` of them from the row ``first`` on.

    Sweep p in the step s of a block has in the trapezoid 1 of block b the rows from
    ``first + width * b + lower.offsets[p] + lower.rise * s`` to before the same of b + 1 and ``upper``, taken
    off; the trapezoid 2 of block b has the rows between b - 1 and b.
    """

    height: int
    width: int
    first: int
    count: int
    lower: Side
    upper: Side

    @property
    def phases(self) -> tuple[int, ...]:
        """0 and 1 for the trapezoids 1 and 2; no 1 where sides are upright, so that nothing is between."""
        return (0,) if _is_upright(self.lower) and _is_upright(self.upper) else (0, 1)

    def rows(
        self, phase: int, sweep: int, block: IntExpression, step: Sequence[tuple[int, IntExpression]]
    ) -> tuple[Terms, Terms]:
        """Return the first row of a trapezoid and the row behind it, as sums; ``step``: a sum, too."""

        def at(side: Side, sign: int, behind: int) -> Terms:
            constant = self.first + self.width * behind + sign * side.offsets[sweep]
            moved = [(sign * side.rise * c, name) for c, name in step]
            return [(self.width, block), *moved, (1, Number(constant))]

        if phase == 0:
            return at(self.lower, 1, 0), at(self.upper, -1, 1)
        return at(self.upper, -1, 0), at(self.lower, 1, 0)


def rows_of(steps: Steps, axis: int) -> list[Rows]:
    """Return ``{ [t, r] }`` for each sweep: its steps and rows."""
    return [_placed(steps, sweep, axis).range() for sweep in steps.sweeps]


def meetings(steps: Steps, axis: int) -> list[Meeting]:
    """Return which rows meet along an axis, for every two sweeps that do.

    A sweep's rows that meet in one step are among them, in either order: there must be none.
    """
    stores, others = zip(*(_touched(steps, sweep, axis) for sweep in steps.sweeps), strict=True)
    found = []
    for p in range(len(steps.sweeps)):
        for q in range(len(steps.sweeps)):
            pairs = [*_through(stores[p], stores[q]), *_through(stores[p], others[q])]
            pairs += _through(others[p], stores[q])
            if not pairs:
                continue
            relation = reduce(isl.Map.union, pairs).intersect(_in_order(p, q)).coalesce()
            if not relation.is_empty():
                found.append(Meeting(p, q, relation))
    return found


def _in_order(source: int, sink: int) -> isl.Map:
    if source < sink:
        return isl.Map("{ [t, r] -> [u, s] : t <= u }")
    if source == sink:
        return isl.Map("{ [t, r] -> [u, s] : t < u or (t = u and r != s) }")
    return isl.Map("{ [t, r] -> [u, s] : t < u }")


def _through(first: Mapping[str, isl.Map], second: Mapping[str, isl.Map]) -> list[isl.Map]:
    return [e.apply_range(second[array].reverse()) for array, e in first.items() if array in second]


def _scope(steps: Steps, sweep: Sweep) -> Scope:
    """Return the steps and points of a sweep."""
    scope = Scope.of_names(()).inside(
        steps.time, Number(steps.first), _below(steps.time, steps.first + steps.count), Number(1)
    )
    for name, extent in zip(sweep.iterators, sweep.extents, strict=True):
        scope = scope.inside(name, Number(0), _below(name, extent), Number(1))
    return scope


def _below(name: str, end: int) -> IntExpression:
    return Operation("<", (Name(name), Number(end)))


def _placed(steps: Steps, sweep: Sweep, axis: int) -> isl.Map:
    """Return ``{ [t, points] -> [t, r] }``."""
    found = _scope(steps, sweep).tuples("", (Name(steps.time), sweep.rows[axis]))
    return found.reset_tuple_id(_DIM.out)


def _touched(steps: Steps, sweep: Sweep, axis: int) -> tuple[dict[str, isl.Map], dict[str, isl.Map]]:
    """Return ``{ [t, r] -> array[element] }``, of stores and of reads, by arrays."""
    scope, at = _scope(steps, sweep), _placed(steps, sweep, axis).reverse()
    found: tuple[dict[str, isl.Map], dict[str, isl.Map]] = ({}, {})
    for touch in sweep.touches:
        here = at.apply_range(scope.tuples(touch.array, touch.subscripts))
        of = found[0 if touch.is_store else 1]
        of[touch.array] = of[touch.array].union(here).coalesce() if touch.array in of else here
    return found


@dataclass(frozen=True)
class Apart:
    """Rows of two sweeps meet ``steps`` apart, or more, ``least`` to ``most`` rows apart."""

    source: int
    sink: int
    steps: int
    least: int
    most: int


def distances(found: Sequence[Meeting]) -> list[Apart] | None:
    """Return how far apart rows meet; None where there is no limit to it, or where one sweep's rows meet."""
    result = []
    for each in found:
        deltas = each.relation.deltas()
        for steps in range(LAST_APART + 1):
            wanted = f"d >= {steps}" if steps == LAST_APART else f"d = {steps}"
            here = deltas.intersect(isl.Set(f"{{ [d, e] : {wanted} }}"))
            if here.is_empty():
                continue
            row = isl.Aff.var_on_domain(isl.LocalSpace.from_space(here.get_space()), _DIM.set, 1)
            ends = least_value(here, row), greatest_value(here, row)
            if not all(end.is_int() for end in ends) or (each.source == each.sink and steps == 0):
                return None
            least, most = (int(end.to_python()) for end in ends)
            result.append(Apart(each.source, each.sink, steps, least, most))
    return result


def sides(apart: Sequence[Apart], sweeps: int) -> tuple[Side, Side] | None:
    """Return the steepest lower and upper side that no row needs one from beyond; None: there are none.

    A sink d steps and e rows on needs ``offset(sink) + rise * d >= offset(source) + e``: offsets are the
    longest ways in that graph, which has some where ``rise`` leaves no way round that gets longer.
    """
    lower = _side([(a.source, a.sink, a.steps, a.most) for a in apart], sweeps)
    upper = _side([(a.source, a.sink, a.steps, -a.least) for a in apart], sweeps)
    return None if lower is None or upper is None else (lower, upper)


def _side(needs: Sequence[tuple[int, int, int, int]], sweeps: int) -> Side | None:
    for rise in range(STEEPEST + 1):
        offsets = [0] * sweeps
        for _ in range(sweeps + 1):
            before = list(offsets)
            for source, sink, steps, rows in needs:
                offsets[sink] = max(offsets[sink], offsets[source] + rows - rise * steps)
            if offsets == before:
                return Side(tuple(offsets), rise)
    return None


def highest(lower: Side, upper: Side, width: int) -> int:
    """Return the most steps that trapezoids of a width have room for; 0 for none."""
    first = max(a + b for a, b in zip(lower.offsets, upper.offsets, strict=True))
    rise = lower.rise + upper.rise
    if first > width:
        return 0
    return (width - first) // rise + 1 if rise else 1 << 30


def fault(tiles: Trapezoids, found: Sequence[Meeting], rows: Sequence[Rows], first_step: int) -> str | None:
    """Return what is wrong with trapezoids; None where each row is in one, and those of a phase are apart.

    For two axes or more it suffices that there is no fault along any of them: then no row needs one of a
    later phase, or of another trapezoid in the same phases.
    """
    phases = [[_tiles(tiles, phase, p, first_step) for p in range(len(rows))] for phase in (0, 1)]
    for p, wanted in enumerate(rows):
        numbered = [
            phases[k][p].insert_dims(_DIM.out, 2, 1).fix_val(_DIM.out, 2, isl_integer(k)) for k in (0, 1)
        ]
        both = numbered[0].union(numbered[1]).intersect_domain(wanted)
        if not both.is_single_valued():
            return f"a row of sweep {p} is in two trapezoids"
        if not wanted.is_subset(both.domain()):
            return f"a row of sweep {p} is in no trapezoid"
    other = isl.Map("{ [k, b] -> [k, c] : b != c }")
    for each in found:
        for phase, later, apart in ((0, 0, other), (1, 1, other), (1, 0, isl.Map("{ [k, b] -> [k, c] }"))):
            needed = each.relation.apply_domain(phases[phase][each.source])
            needed = needed.apply_range(phases[later][each.sink])
            if not needed.is_disjoint(apart):
                return f"sweep {each.sink} in a trapezoid {later + 1} needs sweep {each.source} of another"
    return None


def _tiles(tiles: Trapezoids, phase: int, sweep: int, first_step: int) -> isl.Map:
    """Return ``{ [t, r] -> [block of steps, trapezoid] }`` of a phase."""
    step: Terms = [(1, Name("t")), (-tiles.height, Name("k")), (-1, Number(first_step))]
    start, end = map(_sum, tiles.rows(phase, sweep, Name("b"), step))
    inside = f"0 <= {_sum(step)} < {tiles.height} and {start} <= r < {end}"
    return isl.Map(f"{{ [t, r] -> [k, b] : {inside} and 0 <= b < {tiles.count + phase} }}")


def _sum(terms: Sequence[tuple[int, IntExpression]]) -> str:
    """Return a sum of names and numbers as isl reads it."""
    named = [f"{c}*{term.name}" for c, term in terms if isinstance(term, Name)]
    constant = sum(c * term.value for c, term in terms if isinstance(term, Number))
    return " + ".join([*named, str(constant)])
