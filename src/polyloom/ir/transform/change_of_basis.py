"""Another set of coordinates for a statement's domain: elements of the output in place of iterators.

``dx[w + r] += dy[w] * W[r]`` over (w, r) becomes ``dx[o] += dy[o - r] * W[r]`` over (o, r), where
``0 <= o - r < W``: each element gathers its terms, and nothing overlaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Constant,
    Convert,
    Expression,
    Iterator,
)
from polyloom.ir.host import Index, View
from polyloom.ir.naming import fresh
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType


@dataclass(frozen=True)
class Change:
    """``old[k]`` = ``rows[k]`` of the new coordinates: first one per index of the write, then ``free``.

    ``pivots``: the old dimension that each index of the write tells.
    """

    rows: tuple[Index, ...]
    pivots: tuple[int, ...]
    free: tuple[int, ...]

    def composed(self, affine: Index) -> Index:
        """Return an affine function of the old coordinates as one of the new ones."""
        width = len(self.pivots) + len(self.free)
        total = Index.of((0,) * width, affine.constant)
        for coefficient, row in zip(affine.coefficients, self.rows, strict=True):
            total = _sum(total, coefficient, row)
        return total


def _sum(a: Index, factor: int, b: Index) -> Index:
    pairs = zip(a.coefficients, b.coefficients, strict=True)
    return Index.of(tuple(x + factor * y for x, y in pairs), a.constant + factor * b.constant)


def solved(statement: Statement) -> Change | None:
    """Return the coordinates in which every index of the write is one by itself.

    Each index must tell one dimension (the longest that has the coefficient 1 or -1 in it) in terms of the
    elements and of the others. None where that fails: ``y[2 * i]``, ``y[i][i]``, ``y[0]``.
    """
    pivots = _pivots(statement)
    if pivots is None:
        return None
    free = tuple(k for k in range(len(statement.domain)) if k not in pivots)
    width = len(pivots) + len(free)
    rows = {k: Index.unit(len(pivots) + j, width) for j, k in enumerate(free)}
    while len(rows) < len(statement.domain):
        known = len(rows)
        for m, k in enumerate(pivots):
            index = statement.write.affine[m]
            if k not in rows and all(j in rows for j, c in enumerate(index.coefficients) if c and j != k):
                rows[k] = _row(index, m, k, rows, width)
        if len(rows) == known:
            return None
    return Change(tuple(rows[k] for k in range(len(statement.domain))), pivots, free)


def _pivots(statement: Statement) -> tuple[int, ...] | None:
    pivots: list[int] = []
    for index in statement.write.affine:
        units = [k for k, c in enumerate(index.coefficients) if abs(c) == 1 and k not in pivots]
        if not units:
            return None
        pivots.append(max(units, key=lambda k: statement.domain[k]))
    return tuple(pivots)


def _row(index: Index, m: int, pivot: int, rows: dict[int, Index], width: int) -> Index:
    """Solve ``element m = index`` for the pivot."""
    rest = _sum(Index.unit(m, width), -index.constant, Index.of((0,) * width, 1))
    for k, coefficient in enumerate(index.coefficients):
        if k != pivot and coefficient:
            rest = _sum(rest, -coefficient, rows[k])
    sign = index.coefficients[pivot]
    return Index.of(tuple(sign * c for c in rest.coefficients), sign * rest.constant)


def gathered(statement: Statement, shape: Sequence[int], change: Change) -> Statement:
    """Return the statement over the elements of its output, guarded where an element has fewer terms."""
    names = _names(statement, change)
    extents = (*shape, *(statement.domain[k] for k in change.free))
    width = len(extents)
    bounds = [g for k in change.pivots for g in _bounds(change.rows[k], statement.domain[k])]
    conditions = [*(change.composed(g) for g in statement.conditions), *bounds]
    return statement.changed(
        iterators=names,
        domain=extents,
        reads=tuple(_composed_access(a, change) for a in statement.reads),
        write=replace(statement.write, indices=tuple(Index.unit(m, width) for m in range(len(shape)))),
        expression=_with_iterators(statement.expression, change),
        conditions=tuple(g for g in conditions if not _always(g, extents)),
    )


def _names(statement: Statement, change: Change) -> tuple[str, ...]:
    """Keep the name of a dimension that stays itself; others are called ``o0``, ``o1``, ..."""
    width = len(change.pivots) + len(change.free)
    taken = set(statement.iterators)
    names = []
    for m, k in enumerate(change.pivots):
        same = change.rows[k] == Index.unit(m, width)
        name = statement.iterators[k] if same else _new(f"o{m}", taken)
        names.append(name)
    return (*names, *(statement.iterators[k] for k in change.free))


def _new(name: str, taken: set[str]) -> str:
    taken.add(found := fresh(name, taken))
    return found


def _bounds(row: Index, extent: int) -> tuple[Index, Index]:
    """Return ``row >= 0`` and ``extent - 1 - row >= 0``."""
    return row, Index.of(tuple(-c for c in row.coefficients), extent - 1 - row.constant)


def _always(guard: Index, extents: Sequence[int]) -> bool:
    ends = (min(0, c * (n - 1)) for c, n in zip(guard.coefficients, extents, strict=True))
    return guard.constant + sum(ends) >= 0


def _composed_access(access: View, change: Change) -> View:
    return replace(access, indices=tuple(change.composed(i) for i in access.affine))


def _with_iterators(expression: Expression, change: Change) -> Expression:
    def change_leaf(part: Expression) -> Expression | None:
        if not isinstance(part, Iterator):
            return None
        return affine_value(change.rows[part.dimension], part.type)

    return rebuilt(expression, change_leaf)


def affine_value(affine: Index, kind: ElementType) -> Expression:
    """Return an affine function of the iterators as a scalar function of type ``kind``."""
    wide = ElementType.INT64
    total: Expression = Constant(affine.constant, wide)
    for k, coefficient in enumerate(affine.coefficients):
        if coefficient:
            term = Binary(BinaryOp.MULTIPLY, Constant(coefficient, wide), Iterator(k, wide))
            total = Binary(BinaryOp.ADD, total, term)
    return Convert(kind, total)
