"""Two sequential loops of a nest in tiles, which run as wavefronts: threads share the tiles of each.

    for t from 0 to T:             for wave from 0 to waves:
      for i from 1 to n:             parallel for t_tile from max(0, wave - last) to min(tiles, wave + 1):
        S(t, i)             ->         for t from 4 * t_tile to min(T, 4 * t_tile + 4):
                                         for i from 64 * (wave - t_tile) - t + 1 to the same + 64, in 1 to n:
                                           S(t, i)

A tile is 4 steps high and 64 rows wide, which are moved by ``skew`` a step: so far that no row needs one with
a larger ``i + skew * t`` from an earlier step. Then what a tile needs lies in tiles that are before it along
both loops, or in neither after it, and those of a wave need nothing of each other. How far rows are apart
that touch an element is computed from sets; that the new loops visit each row once is asked of them, too.

Source: Wolf and Lam 1991 (skewing, wavefronts of tiles). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from polyloom.ir.expressions import Constant, ParameterValue, Read, walk
from polyloom.ir.expressions import Iterator as IteratorValue
from polyloom.ir.host import Assignment, HostNode, HostProgram, Index, Nest, expressions_of
from polyloom.ir.naming import fresh
from polyloom.mdh.device.costs import CpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.program_tree import names_of
from polyloom.polyhedra.loops.accesses import NotKnown, question
from polyloom.polyhedra.loops.scope import Scope
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Part,
    Tree,
    names_in,
    nodes_in,
    sum_of,
)
from polyloom.polyhedra.loops.wavefronts import (
    Touched,
    elements_of_step,
    extent,
    most_points,
    skew_of,
    visits_each_once,
)

OPERATIONS = 2_000_000
"""What isl may spend on a nest: ten times what Gauss-Seidel's method takes."""
LARGEST_SHARE = 0.8
"""Of the time of the loops in order that waves may be expected to take."""
BEGINNING = 150
"""Cycles in which the rows of a step begin and end: a mispredicted branch, a chain that is empty. Estimate:
tables of alignments (Zen 3, two threads) took 24 ms in tiles of 32 x 16, 10 ms in 8 x 64 and 32 x 256."""
OWN_SHARE = 0.25
"""Of the last cache, which others use too: what the rows of a step may count on. Estimate."""
SIZES = tuple(1 << k for k in range(11))


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """The rows of a nest: ``outer`` and ``inner`` are its loops, ``points`` is ``{ [t, i] }``."""

    nest: Nest
    outer: Loop[Part]
    inner: Loop[Part]
    scope: Scope


@dataclass(frozen=True)
class Wave:
    """Tiles: ``height`` steps, and ``width`` rows of those moved by ``skew`` a step."""

    skew: int
    height: int
    width: int


def with_wavefronts(program: HostProgram, device: DeviceModel) -> HostProgram:
    """Return a program, all of whose sizes are known, with nests as waves of tiles where that is quicker."""
    taken = names_of(program)
    body = tuple(_node(node, program, device, taken) for node in program.body)
    return replace(program, body=body)


def _node(node: HostNode, program: HostProgram, device: DeviceModel, taken: set[str]) -> HostNode:
    if not isinstance(node, Nest):
        return node
    try:
        with question(f"how tiles of `{node.name}` may lie", OPERATIONS):
            rows = rows_of(node)
            if rows is None:
                return node
            touched = touched_by(rows)
            skew = skew_of(touched)
            if skew is None:
                return node
            found = _cost(rows, touched, skew, program, device).best()
            return node if found is None else in_waves(rows, found, taken)
    except NotKnown:
        return node


def rows_of(nest: Nest) -> Rows | None:
    """Return the rows of a nest of two loops by one, right inside each other; None where it is none."""
    match nest:
        case Nest(iterators=(), private=(), body=(Loop(body=(Loop() as inner,)) as outer,)):
            pass
        case _:
            return None
    if not (_is_by_one(outer, ()) and _is_by_one(inner, (outer.iterator,))):
        return None
    names = [n.iterator for n in nodes_in(nest.body) if isinstance(n, Loop)]
    if names.count(outer.iterator) > 1 or names.count(inner.iterator) > 1:
        return None
    scope = _inside(_inside(Scope.of_names(()), outer), inner)
    return Rows(nest=nest, outer=outer, inner=inner, scope=scope)


def _inside(scope: Scope, loop: Loop[Any]) -> Scope:
    return scope.inside(loop.iterator, loop.start, loop.condition, loop.step)


def _is_by_one(loop: Loop[Part], known: Sequence[str]) -> bool:
    end = _end(loop)
    return (
        loop.step == Number(1)
        and end is not None
        and names_in(loop.start) <= set(known)
        and names_in(end) <= set(known)
    )


def _end(loop: Loop[Part]) -> IntExpression | None:
    """Return the number behind a loop's last one; None where its condition says more."""
    match loop.condition:
        case Operation(operator="<", operands=(Name(name=name), end)) if name == loop.iterator:
            return end
        case Operation(operator="<=", operands=(Name(name=name), end)) if name == loop.iterator:
            return sum_of([(1, end), (1, Number(1))])
    return None


# What rows touch


def touched_by(rows: Rows) -> list[Touched]:
    """Return what the instances of a nest touch."""
    return list(_touched(rows.inner.body, rows.scope, _assignments(rows.nest)))


def _assignments(nest: Nest) -> Mapping[str, Assignment]:
    return {a.name: a for a in nest.assignments}


def _touched(tree: Tree, scope: Scope, assignments: Mapping[str, Assignment]) -> Iterator[Touched]:
    for node in tree:
        match node:
            case Loop(body=body):
                yield from _touched(body, _inside(scope, node), assignments)
            case Branch(condition=condition, body=body, otherwise=otherwise):
                yield from _touched(body, scope.where(condition), assignments)
                yield from _touched(otherwise, scope.where(condition, holds=False), assignments)
            case Instance(statement=statement, arguments=arguments):
                made = assignments[statement]
                for view in (*made.reads, made.target):
                    where = [_subscript(index, arguments) for index in view.indices]
                    yield Touched(view.buffer, scope.tuples(view.buffer, where), view is made.target)


def _subscript(index: Index | object, arguments: Sequence[IntExpression]) -> IntExpression | None:
    """Return a subscript; None, which is any, where data choose it."""
    if not isinstance(index, Index):
        return None
    return sum_of([*zip(index.coefficients, arguments, strict=True), (1, index.offset)])


# The new loops


def in_waves(rows: Rows, wave: Wave, taken: set[str]) -> HostNode:
    """Return a nest as waves of tiles; its new names are added to ``taken``. Errors: NotKnown."""
    steps, first, last = _extent(rows, wave.skew)
    tiles, across = ceil(len(steps) / wave.height), (last - first) // wave.width + 1
    names = []
    for wanted in ("wave", f"{rows.outer.iterator}_tile"):
        names.append(fresh(wanted, taken))
        taken.add(names[-1])
    of_waves, of_tiles = map(Name, names)
    of_rows = _rows_in_tile(rows, wave, (steps, first), of_waves, of_tiles)
    of_steps = _steps_in_tile(rows, wave, steps, of_tiles, of_rows)
    nest = replace(rows.nest, body=(of_steps,))
    shared = Loop[HostNode](
        iterator=of_tiles.name,
        start=Operation("max", (Number(0), sum_of([(1, of_waves), (-1, Number(across - 1))]))),
        condition=Operation(
            "<", (of_tiles, Operation("min", (Number(tiles), sum_of([(1, of_waves), (1, Number(1))]))))
        ),
        step=Number(1),
        body=(nest,),
        parallel=True,
    )
    found = Loop[HostNode](
        iterator=of_waves.name,
        start=Number(0),
        condition=Operation("<", (of_waves, Number(tiles + across - 1))),
        step=Number(1),
        body=(shared,),
    )
    scope = _inside(_inside(Scope.of_names(()), found), shared)
    scope = _inside(_inside(scope, of_steps), of_rows)
    if not visits_each_once(scope, rows.scope):
        raise NotKnown(f"how waves visit the rows of `{rows.nest.name}`")
    return found


def _rows_in_tile(
    rows: Rows, wave: Wave, begin: tuple[range, int], of_waves: Name, of_tiles: Name
) -> Loop[Part]:
    """Return the loop over rows of a step; ``begin``: the steps, and the first of all rows that are moved."""
    (steps, first), inner = begin, rows.inner
    tile: list[tuple[int, IntExpression]] = [(wave.width, of_waves), (-wave.width, of_tiles)]
    moved = Number(wave.skew * steps.start + first)
    low = sum_of([*tile, (-wave.skew, Name(rows.outer.iterator)), (1, moved)])
    end = _end(inner)
    assert end is not None
    behind = Operation("min", (end, sum_of([(1, low), (1, Number(wave.width))])))
    return replace(inner, start=Operation("max", (inner.start, low)), condition=_below(inner, behind))


def _steps_in_tile(rows: Rows, wave: Wave, steps: range, of_tiles: Name, body: Loop[Part]) -> Loop[Part]:
    start = sum_of([(wave.height, of_tiles), (1, Number(steps.start))])
    behind = sum_of([(wave.height, of_tiles), (1, Number(steps.start + wave.height))])
    end = Operation("min", (Number(steps.stop), behind))
    return replace(rows.outer, start=start, condition=_below(rows.outer, end), body=(body,))


def _below(loop: Loop[Part], end: IntExpression) -> IntExpression:
    return Operation("<", (Name(loop.iterator), end))


def _extent(rows: Rows, skew: int) -> tuple[range, int, int]:
    """Return the steps, and the first and last row where they are moved from the first step on."""
    first, last = extent(rows.scope, 1, 0)
    low, high = extent(rows.scope, skew, 1)
    return range(first, last + 1), low - skew * first, high - skew * first


# What is gained


@dataclass(frozen=True, kw_only=True)
class WaveCost:
    """``seconds``: of a row in one thread; ``row_bytes``: what it touches, which takes ``brought`` seconds.

    ``begun``: seconds until the rows of a step are under way. Rows of a tile come in once, from where those
    of a step fit; ``held``: bytes that a tile may touch.
    """

    skew: int
    steps: int
    rows: int
    seconds: float
    row_bytes: float
    brought: float
    begun: float
    threads: int
    launch: float
    held: float

    def best(self) -> Wave | None:
        """Return the tiles that take least; None where they gain little."""
        shapes = [
            Wave(self.skew, height, width)
            for height in SIZES
            for width in SIZES
            if height <= self.steps and width <= self.rows and self._fits(height, width)
        ]
        found = min(shapes, key=self.expected, default=None)
        whole = self.steps * (self.begun + self.rows * (self.seconds + self.brought))
        return found if found is not None and self.expected(found) < LARGEST_SHARE * whole else None

    def _fits(self, height: int, width: int) -> bool:
        return (width + self.skew * height) * self.row_bytes <= self.held

    def expected(self, wave: Wave) -> float:
        """Return the seconds of all waves: in each, the tiles of one thread, and a meeting."""
        along, across = (
            ceil(self.steps / wave.height),
            ceil((self.rows + self.skew * self.steps) / wave.width),
        )
        least, waves = min(along, across), along + across - 1
        most = (waves - 2 * (least - 1)) * ceil(least / self.threads)
        ends = sum(ceil(k / self.threads) for k in range(1, least))
        apart = wave.width + self.skew * wave.height
        tile = wave.height * (self.begun + wave.width * self.seconds) + apart * self.brought
        return (most + 2 * ends) * tile + waves * self.launch


def _cost(
    rows: Rows, touched: Sequence[Touched], skew: int, program: HostProgram, device: DeviceModel
) -> WaveCost:
    costs = device.costs.kernels
    assert isinstance(costs, CpuCosts)
    caches = [device.costs.memory.usable_share * size for size in device.caches or costs.default_caches]
    steps, low, high = _extent(rows, 0)
    count = high - low + 1
    hertz = max(device.clock_mhz, costs.least_clock_mhz) * 1e6
    operations = sum(not isinstance(p, _LEAVES) for e in expressions_of(rows.nest) for p in walk(e))
    elements = elements_of_step(touched, steps.start)
    whole = float(sum(count * program.by_name[array].type.size for array, count in elements.items()))
    own = caches[min(1, len(caches) - 1)]
    rate = costs.bytes_per_cycle[-1 if whole > OWN_SHARE * caches[-1] else 1] * hertz
    return WaveCost(
        skew=skew,
        steps=len(steps),
        rows=count,
        seconds=most_points(list(_scopes(rows.inner.body, rows.scope)))
        * max(1, operations)
        / costs.fma_per_cycle
        / hertz,
        row_bytes=whole / count,
        brought=2 * whole / count / rate if whole > own else 0.0,
        begun=BEGINNING / hertz,
        threads=device.compute_units,
        launch=4 * costs.launch_seconds,
        held=own,
    )


_LEAVES = Read | Constant | ParameterValue | IteratorValue


def _scopes(tree: Tree, scope: Scope) -> Iterator[Scope]:
    for node in tree:
        match node:
            case Loop(body=body):
                yield from _scopes(body, _inside(scope, node))
            case Branch(condition=condition, body=body):
                yield from _scopes(body, scope.where(condition))
            case Instance():
                yield scope
