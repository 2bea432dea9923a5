"""Tiles of host loops and the waves in which they run, in two dimensions: samples, drawn from the schedule.

A wave is what runs between two meetings of the threads: the tiles of one are independent. Around the tiles of
a wave stand sequential loops, whose values and places in the program number the waves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from polyloom.ir.host import HostNode, HostProgram, Index, MdHom, Nest, View
from polyloom.ir.integers import TRUE
from polyloom.polyhedra.loops.accesses import NotKnown, question
from polyloom.polyhedra.loops.outlines import outlines
from polyloom.polyhedra.loops.scope import Scope
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Tree,
    names_in,
    sum_of,
)

OPERATIONS = 3_000_000
"""What isl may spend on the picture of one nest."""
MOST_STORES, MOST_NESTS = 40, 8
FIRST_STEPS, FIRST_TILES = 3, 5
"""Of how many values of a sequential loop, and of a parallel one, tiles are drawn."""


@dataclass(frozen=True, kw_only=True)
class Tile:
    """``wave``: from 1 on; ``nodes``: whose points it has.

    ``rows``: (row, first point, last point) of some of its rows; ``full``: with all points between these.
    """

    wave: int
    nodes: tuple[str, ...]
    rows: tuple[tuple[int, int, int], ...]
    full: bool = True


@dataclass(frozen=True, kw_only=True)
class Waves:
    """Tiles of a loop nest; ``down`` and ``across``: what rows and points are; ``at``: where it is cut."""

    loop: str
    down: str
    across: str
    at: str
    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class _Store:
    """A view that a node stores by, in its loops, outermost first, with its place in the body of each."""

    node: str
    loops: tuple[Loop[HostNode], ...]
    places: tuple[int, ...]
    scope: Scope
    array: str = ""
    subscripts: tuple[IntExpression, ...] = ()

    def label(self, k: int) -> str:
        """Return what a subscript is, counted from the last one, 1: ``A[·][x]``."""
        rank = len(self.subscripts)
        return self.array + "".join("[x]" if rank - place == k else "[·]" for place in range(rank))

    @property
    def tile(self) -> tuple[Loop[HostNode], ...]:
        """The loops that number tiles: all as far as the parallel ones go."""
        parallel = [k for k, loop in enumerate(self.loops) if loop.parallel]
        return self.loops[: parallel[-1] + 1] if parallel else self.loops

    @property
    def inside(self) -> tuple[Loop[HostNode], ...]:
        """The loops of a tile."""
        return self.loops[len(self.tile) :]

    def key(self, values: Sequence[int]) -> tuple[int, ...]:
        """Return what orders the wave of a tile among all: places and values up to a parallel loop."""
        found = []
        for loop, place, value in zip(self.tile, self.places, values, strict=False):
            found.append(place)
            if loop.parallel:
                return tuple(found)
            found.append(value)
        return (*found, self.places[len(self.tile)])


def waves_of(program: HostProgram) -> tuple[Waves, ...]:
    """Return a picture of each outermost host loop of a program of known sizes that has one."""
    found: list[Waves] = []
    for node in program.body:
        if isinstance(node, Loop) and len(found) < MOST_NESTS:
            try:
                with question(f"how tiles of the loop over {node.iterator} lie", OPERATIONS):
                    found += _waves(node)
            except (NotKnown, NotImplementedError):
                continue
    return tuple(found)


def _waves(nest: Loop[HostNode]) -> Iterator[Waves]:
    stores = list(_stores(nest, (), (0,), Scope.of_names(())))
    if not stores or len(stores) > MOST_STORES:
        return
    axes = _axes(stores[0])
    if axes is None:
        return
    fixed = [(k, _middle(stores[0], k)) for k in axes.fixed]
    tiles: dict[tuple[tuple[int, ...], tuple[int, ...]], Tile] = {}
    for store in stores:
        if any(k > len(store.subscripts) for k in (axes.across, axes.down or 1)):
            continue
        numbers = [(loop.iterator, _most(store, loop, axes)) for loop in store.tile]
        cut = _cut(store, fixed)
        for each in outlines(cut, numbers, axes.row(store), store.subscripts[-axes.across]):
            key = store.key(each.tile), each.tile
            here = Tile(wave=0, nodes=(store.node,), rows=each.rows, full=each.full)
            tiles[key] = _joined(tiles[key], here) if key in tiles else here
    order = {wave: k for k, wave in enumerate(sorted({wave for wave, _ in tiles}), 1)}
    if len(order) < 2:
        return
    yield Waves(
        loop=nest.iterator,
        down=axes.time or stores[0].label(axes.down or 1),
        across=stores[0].label(axes.across),
        at=", ".join(f"{stores[0].label(k)} = {value}" for k, value in fixed),
        tiles=tuple(replace(tile, wave=order[wave]) for (wave, _), tile in tiles.items()),
    )


def _joined(tile: Tile, other: Tile) -> Tile:
    """Return a tile with the points of two nodes: its rows go as far as either does."""
    rows = {row: (first, last) for row, first, last in tile.rows}
    for row, first, last in other.rows:
        known = rows.get(row, (first, last))
        rows[row] = min(first, known[0]), max(last, known[1])
    nodes = tuple(dict.fromkeys((*tile.nodes, *other.nodes)))
    ends = tuple((row, *rows[row]) for row in sorted(rows))
    return replace(tile, nodes=nodes, rows=ends, full=tile.full and other.full)


@dataclass(frozen=True)
class _Axes:
    """Rows are values of the loop ``time``, or else of a subscript; subscripts count from the last one, 1."""

    time: str
    down: int | None
    across: int
    fixed: tuple[int, ...] = ()

    def row(self, store: _Store) -> IntExpression:
        return Name(self.time) if self.down is None else store.subscripts[-self.down]


def _axes(store: _Store) -> _Axes | None:
    """Choose the two dimensions: time and what is cut along it, or the two that a wave goes through."""
    rank = len(store.subscripts)
    parallel = [loop.iterator for loop in store.tile if loop.parallel]
    cut = [k for k in range(rank, 0, -1) if any(_moves(store, k, name) for name in parallel)]
    if cut and store.inside:
        return _Axes(store.inside[0].iterator, None, cut[0], tuple(cut[1:]))
    moving = [k for k in range(1, rank + 1) if any(_moves(store, k, loop.iterator) for loop in store.tile)]
    if rank >= 2 and moving:
        return _Axes("", 2, 1)
    return _Axes(store.loops[0].iterator, None, rank) if rank else None


def _moves(store: _Store, k: int, loop: str) -> bool:
    return loop in names_in(store.subscripts[-k])


def _most(store: _Store, loop: Loop[HostNode], axes: _Axes) -> int:
    """Return of how many values of a loop tiles are drawn: of all where the picture is cut through them."""
    if any(_moves(store, k, loop.iterator) for k in axes.fixed):
        return 0
    return FIRST_TILES if loop.parallel else FIRST_STEPS if loop is not store.loops[-1] else 2 * FIRST_STEPS


def _middle(store: _Store, k: int) -> int:
    (outline,) = outlines(store.scope, (), Number(0), store.subscripts[-k])
    return sum(outline.rows[0][1:]) // 2


def _cut(store: _Store, fixed: Sequence[tuple[int, int]]) -> Scope:
    scope = store.scope
    for k, value in fixed:
        if k <= len(store.subscripts):
            scope = scope.where(Operation("==", (store.subscripts[-k], Number(value))))
    return scope


def _stores(
    node: HostNode, loops: tuple[Loop[HostNode], ...], places: tuple[int, ...], scope: Scope
) -> Iterator[_Store]:
    match node:
        case Loop(iterator=name, start=start, condition=condition, step=step, body=body):
            inner = scope.inside(name, start, condition, step)
            for k, each in enumerate(body):
                yield from _stores(each, (*loops, node), (*places, k), inner)
        case Branch(condition=condition, body=body, otherwise=otherwise):
            for holds, side in ((True, body), (False, otherwise)):
                for each in side:
                    yield from _stores(each, loops, places, scope.where(condition, holds=holds))
        case MdHom():
            points = _points(scope, node).where(node.guard or TRUE)
            yield from _of_view(_Store(node.name, loops, places, points), node.outputs[0], node.iterators)
        case Nest():
            of = {a.name: a for a in node.assignments}
            for inner, instance in _instances(node.body, _points(scope, node)):
                of_statement = of[instance.statement]
                for name, value in zip(of_statement.iterators, instance.arguments, strict=True):
                    inner = inner.with_value(f"{of_statement.name}_{name}", value)
                names = tuple(f"{of_statement.name}_{name}" for name in of_statement.iterators)
                store = _Store(of_statement.name, loops, places, inner)
                yield from _of_view(store, of_statement.target, names)


def _points(scope: Scope, node: MdHom | Nest) -> Scope:
    for name, extent in zip(node.iterators, node.extents, strict=True):
        scope = scope.inside(name, Number(0), Operation("<", (Name(name), extent)), Number(1))
    return scope


def _instances(body: Tree, scope: Scope) -> Iterator[tuple[Scope, Instance]]:
    for node in body:
        match node:
            case Loop(iterator=name, start=start, condition=condition, step=step, body=inside):
                yield from _instances(inside, scope.inside(name, start, condition, step))
            case Branch(condition=condition, body=then, otherwise=otherwise):
                yield from _instances(then, scope.where(condition))
                yield from _instances(otherwise, scope.where(condition, holds=False))
            case Instance():
                yield scope, node


def _of_view(store: _Store, view: View, names: Sequence[str]) -> Iterator[_Store]:
    """Yield the store by a view, if its subscripts are no data."""
    found = []
    for index in view.indices:
        if not isinstance(index, Index):
            return
        moving = [(c, Name(name)) for c, name in zip(index.coefficients, names, strict=False) if c]
        found.append(sum_of([*moving, (1, index.offset)]))
    yield replace(store, array=view.buffer, subscripts=tuple(found))
