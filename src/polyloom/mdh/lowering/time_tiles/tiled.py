"""Host loops over time as loops over blocks of steps and trapezoids, which threads share.

    for t from 0 to T:                 for t_block from 0 to T / 16:
      B := f(A)                          parallel for i_tile from 0 to n / 64:
      A := f(B)               ->           for t from 16 * t_block to 16 * t_block + 16:
                                             the rows of a trapezoid 1: B := f(A), A := f(B)
                                         parallel for i_tile from 0 to n / 64 + 1:
                                           the same for the trapezoids 2

With rows along two axes there are four phases: 1 and 2 along either axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil

from polyloom.ir.host import HostNode, Index, MdHom, View
from polyloom.ir.naming import fresh
from polyloom.mdh.lowering.time_tiles.sweeps import Row, TimeLoop
from polyloom.polyhedra.loops.tree import (
    Branch,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    replace_name,
    sum_of,
)
from polyloom.polyhedra.time_tiles import Terms, Trapezoids


@dataclass(frozen=True)
class Taken:
    """Names of a program: of its integers and arrays, and of its nodes."""

    integers: set[str]
    nodes: set[str]


@dataclass(frozen=True, kw_only=True)
class TilesOf:
    """What becomes of a host loop: trapezoids along some of its axes."""

    loop: TimeLoop
    axes: tuple[int, ...]
    tiles: tuple[Trapezoids, ...]


@dataclass(frozen=True)
class TiledLoop:
    """``like``: for each md_hom of a trapezoid, by name, the same with numbers for its sizes."""

    loop: Loop[HostNode]
    like: Mapping[str, MdHom]


def tiled_loop(of: TilesOf, taken: Taken) -> TiledLoop:
    """Return the loop over blocks of steps; its new names are added to ``taken``."""
    steps, height = of.loop.steps, of.tiles[0].height
    block = _new(f"{steps.time}_block", taken.integers)
    names = [_new(f"{_called(of.loop, axis)}_tile", taken.integers) for axis in of.axes]
    like: dict[str, MdHom] = {}
    body = []
    for number, phase in enumerate(product(*(tiles.phases for tiles in of.tiles)), 1):
        homs = []
        for hom in of.loop.homs:
            homs.append(replace(hom, name=_new(f"{hom.name}_{number}", taken.nodes)))
            like[homs[-1].name] = _like(of, len(homs) - 1)
        body.append(_phase(replace(of, loop=replace(of.loop, homs=tuple(homs))), phase, block, names))
    return TiledLoop(_counted(block, Number(ceil(steps.count / height)), tuple(body)), like)


def _like(of: TilesOf, number: int) -> MdHom:
    """Return an md_hom at as many points as it has in a trapezoid half way up."""
    hom = of.loop.homs[number]
    extents = list(hom.extents)
    for axis, tiles in zip(of.axes, of.tiles, strict=True):
        d = of.loop.axes[axis][number].dimension
        if d is not None:
            whole, gone = extents[d], (tiles.lower.rise + tiles.upper.rise) * tiles.height // 2
            assert isinstance(whole, Number)
            extents[d] = Number(max(1, min(whole.value, tiles.width - gone)))
    return replace(hom, extents=tuple(extents))


def _new(name: str, taken: set[str]) -> str:
    found = fresh(name, taken)
    taken.add(found)
    return found


def _called(loop: TimeLoop, axis: int) -> str:
    """Name an axis after the iterator of the first md_hom that moves along it."""
    return next(
        hom.iterators[row.dimension]
        for hom, row in zip(loop.homs, loop.axes[axis], strict=True)
        if row.dimension is not None
    )


def _counted(
    name: str, end: IntExpression, body: tuple[HostNode, ...], *, parallel: bool = False
) -> Loop[HostNode]:
    condition = Operation("<", (Name(name), end))
    return Loop(
        iterator=name, start=Number(0), condition=condition, step=Number(1), body=body, parallel=parallel
    )


def _phase(of: TilesOf, phase: Sequence[int], block: str, names: Sequence[str]) -> Loop[HostNode]:
    """Return a loop that threads share over the trapezoids of a phase."""
    found = _steps(of, phase, block, names)
    for name, tiles, which in reversed(list(zip(names, of.tiles, phase, strict=True))):
        found = _counted(name, Number(tiles.count + which), (found,), parallel=True)
    return found


def _steps(of: TilesOf, phase: Sequence[int], block: str, names: Sequence[str]) -> Loop[HostNode]:
    """Return the steps of a block for one trapezoid."""
    steps, height = of.loop.steps, of.tiles[0].height
    start = sum_of([(height, Name(block)), (1, Number(steps.first))])
    end = sum_of([(height, Name(block)), (1, Number(steps.first + height))])
    if steps.count % height:
        end = Operation("min", (Number(steps.first + steps.count), end))
    step: Terms = [(1, Name(steps.time)), (-height, Name(block)), (-1, Number(steps.first))]
    body: list[HostNode] = []
    for p, hom in enumerate(of.loop.homs):
        node: HostNode = hom
        for axis, tiles, which, name in zip(of.axes, of.tiles, phase, names, strict=True):
            first, behind = tiles.rows(which, p, Name(name), step)
            node = _between(node, of.loop.axes[axis][p], first, behind)
        body.append(node)
    return replace(
        of.loop.loop, start=start, condition=Operation("<", (Name(steps.time), end)), body=tuple(body)
    )


def _between(node: HostNode, row: Row, first: Terms, behind: Terms) -> HostNode:
    """Return an md_hom, or a branch around it, at its points in some rows."""
    if isinstance(node, Branch):
        return replace(node, body=tuple(_between(inner, row, first, behind) for inner in node.body))
    assert isinstance(node, MdHom)
    if row.dimension is None:
        here = Number(row.constant)
        inside = Operation("<=", (sum_of(first), here)), Operation("<", (here, sum_of(behind)))
        return Branch(Operation("and", inside), (node,))
    whole = node.extents[row.dimension]
    low, high = _points(row, first), _points(row, behind)
    if row.step < 0:
        low, high = [*high, (1, Number(1))], [*low, (1, Number(1))]
    start = Operation("max", (Number(0), sum_of(low)))
    end = Operation("min", (whole, sum_of(high)))
    return _part(node, row.dimension, start, sum_of([(1, end), (-1, start)]))


def _points(row: Row, place: Terms) -> Terms:
    """Return the point along the dimension of a row that is at a place along the axis."""
    return [*((row.step * c, term) for c, term in place), (-row.step, Number(row.constant))]


def _part(hom: MdHom, dimension: int, start: IntExpression, extent: IntExpression) -> MdHom:
    """Return an md_hom at ``extent`` of its points along a dimension, from ``start`` on."""

    def moved(view: View) -> View:
        indices = (
            Index(i.coefficients, sum_of([(i.coefficients[dimension], start), (1, i.offset)]))
            for i in view.affine
        )
        return replace(view, indices=tuple(indices))

    def shifted(condition: IntExpression | None) -> IntExpression | None:
        name = hom.iterators[dimension]
        return (
            None
            if condition is None
            else replace_name(condition, name, sum_of([(1, Name(name)), (1, start)]))
        )

    extents = tuple(extent if d == dimension else e for d, e in enumerate(hom.extents))
    return replace(
        hom,
        extents=extents,
        inputs=tuple(map(moved, hom.inputs)),
        outputs=tuple(map(moved, hom.outputs)),
        guard=shifted(hom.guard),
        written=shifted(hom.written),
    )
