"""Maps whose reads ask for quotients of an iterator, over its quotients and remainders.

    y[i] = f(x[i / 2], i % 2) over n    ->    y[2 * i' + r] = f(x[i'], r) over n / 2 x 2

Images that are made larger, and values that hold for several points, are like this. What is read has an
affine subscript then, so vectors are loaded and not gathered; the remainders along a row are parts of records
(``unrolled_records``), whose results are computed side by side and shuffled into each other. Done where rows
of results are at least ``MANY`` quotients long, and sizes are multiples of the divisor.

Not in the papers. Source: one convolution for each remainder of the stride (Shi et al. 2016: idea).
"""

from __future__ import annotations

from collections.abc import Iterator as Iterating
from dataclasses import replace

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Iterator
from polyloom.ir.host import HostNode, HostProgram, Index, MdHom, Order, View
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.transform.records.unrolled_records import LINES, MANY
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Number, names_in, with_leaves

_WIDE = ElementType.INT64


def with_digits_of_iterators(program: HostProgram) -> HostProgram:
    """Return the program with maps over quotients and remainders of iterators that reads divide.

    Every element gets the value that it had, by the same operations.
    """

    def change(node: HostNode) -> tuple[HostNode, ...]:
        return (in_digits(node) if isinstance(node, MdHom) else node,)

    return replace(program, body=with_leaves(program.body, change))


def in_digits(hom: MdHom) -> MdHom:
    """Return a map over quotients and remainders; itself where its rows are not divided."""
    if not _is_plain(hom):
        return hom
    rows = {k for view in hom.outputs for k in _along_rows(view)}
    if not any(_points(hom, d) >= MANY * k for d in rows if (k := _divisor(hom, d))):
        return hom
    for d in reversed(range(len(hom.extents))):
        divisor = _divisor(hom, d)
        if divisor:
            hom = _Split(hom, d, divisor).made()
    return hom


def _is_plain(hom: MdHom) -> bool:
    """Whether an md_hom is a map of all points of its box into elements with affine subscripts."""
    parts = (*hom.initial, *hom.finish, hom.guard, hom.written)
    affine = all(isinstance(index, Index) for view in hom.outputs for index in view.indices)
    return affine and not any(parts) and all(o.order is Order.CONCATENATE for o in hom.combine)


def _along_rows(view: View) -> Iterating[int]:
    """Yield the dimension along which a result's neighbours lie."""
    last = view.indices[-1] if view.indices else None
    if isinstance(last, Index):
        yield from (d for d, c in last.used if c == 1)


def _points(hom: MdHom, d: int) -> int:
    extent = hom.extents[d]
    return extent.value if isinstance(extent, Number) else 0


def _divisor(hom: MdHom, d: int) -> int:
    """Return by what subscripts divide an iterator; 0 where none does, or not all of its points evenly."""
    found = {k for view in hom.inputs for i in view.indices for k in _divisors(i, d)}
    if len(found) != 1 or any(hom.iterators[d] in names_in(extent) for extent in hom.extents):
        return 0
    (divisor,) = found
    return divisor if divisor in LINES and _points(hom, d) % divisor == 0 else 0


def _divisors(index: Index | Expression, d: int) -> list[int]:
    found: list[int] = []

    def note(part: Expression) -> None:
        match part:
            case Binary(op=BinaryOp.DIVIDE, left=Iterator(dimension=k), right=Constant(value=value)) if (
                k == d
            ):
                found.append(int(value))

    if not isinstance(index, Index):
        rebuilt(index, note)
    return found


class _Split:
    """A map with dimension ``d`` cut into quotients by ``divisor``, and remainders right behind them."""

    def __init__(self, hom: MdHom, d: int, divisor: int) -> None:
        self.hom, self.d, self.divisor = hom, d, divisor

    def made(self) -> MdHom:
        """Return the md_hom."""
        hom, d = self.hom, self.d
        name, combine = hom.iterators[d], hom.combine[d]
        return replace(
            hom,
            iterators=(*hom.iterators[:d], name, f"{name}_digit", *hom.iterators[d + 1 :]),
            extents=(
                *hom.extents[:d],
                Number(_points(hom, d) // self.divisor),
                Number(self.divisor),
                *hom.extents[d + 1 :],
            ),
            combine=(*hom.combine[:d], combine, combine, *hom.combine[d + 1 :]),
            inputs=tuple(map(self._view, hom.inputs)),
            outputs=tuple(map(self._view, hom.outputs)),
            terms=tuple(rebuilt(term, self._leaf) for term in hom.terms),
        )

    def _view(self, view: View) -> View:
        return replace(view, indices=tuple(map(self._index, view.indices)))

    def _index(self, index: Index | Expression) -> Index | Expression:
        if isinstance(index, Index):
            c, d = index.coefficients, self.d
            return Index((*c[:d], c[d] * self.divisor, c[d], *c[d + 1 :]), index.offset)
        return _affine(rebuilt(index, self._leaf), len(self.hom.extents) + 1)

    def _leaf(self, part: Expression) -> Expression | None:
        d, k = self.d, self.divisor
        match part:
            case Binary(
                op=BinaryOp.DIVIDE, left=Iterator(dimension=e, type=kind), right=Constant(value=v)
            ) if (e, v) == (d, k):
                return Iterator(d, kind)
            case Binary(
                op=BinaryOp.REMAINDER, left=Iterator(dimension=e, type=kind), right=Constant(value=v)
            ) if (e, v) == (d, k):
                return Iterator(d + 1, kind)
            case Iterator(dimension=e, type=kind) if e == d:
                tens = Binary(BinaryOp.MULTIPLY, Iterator(d, kind), Constant(k, kind))
                return Binary(BinaryOp.ADD, tens, Iterator(d + 1, kind))
            case Iterator(dimension=e, type=kind):
                return Iterator(e + (e > d), kind)
            case _:
                return None


def _affine(index: Expression, dimensions: int) -> Index | Expression:
    """Return a subscript as a linear function where it is an iterator, and a number at most."""
    match index:
        case Iterator(dimension=d):
            return Index.unit(d, dimensions)
        case Binary(
            op=BinaryOp.ADD | BinaryOp.SUBTRACT as op,
            left=Iterator(dimension=d, type=kind),
            right=Constant(value=v),
        ) if kind is _WIDE:
            offset = int(v) if op is BinaryOp.ADD else -int(v)
            return Index(Index.unit(d, dimensions).coefficients, Number(offset))
        case _:
            return index
