"""Views of an md_hom as addresses: where an element lies, and how far a step along a dimension goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd, prod

from polyloom.ir.expressions import ParameterValue, walk
from polyloom.ir.host import Buffer, Index, MdHom, Order, View, expressions_of
from polyloom.ir.rebuild import read_positions
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, names_in, product_of, sum_of

Buffers = Mapping[str, Buffer]
ZERO, ONE = Number(0), Number(1)


@dataclass(frozen=True, kw_only=True)
class Access:
    """``buffer[base + sum(strides[d] * iterator[d])]``, the buffer taken as one row of elements.

    ``steps[k][d]``: the coefficient of dimension d in index k; ``offsets[k]``: the rest of index k.
    """

    buffer: Buffer
    strides: tuple[IntExpression, ...]
    base: IntExpression
    steps: tuple[tuple[int, ...], ...]
    offsets: tuple[IntExpression, ...]

    def uses(self, dimension: int) -> bool:
        """Whether the element depends on a dimension."""
        return dimension in self._used

    @cached_property
    def _used(self) -> frozenset[int]:
        return frozenset(d for step in self.steps for d, far in enumerate(step) if far)

    def is_unit(self, dimension: int) -> bool:
        """Whether neighbours along a dimension are neighbours in memory."""
        return self.strides[dimension] == ONE

    def is_fixed(self, dimension: int) -> bool:
        """Whether all points along a dimension have one element."""
        return self.strides[dimension] == ZERO


def access_of(view: View, buffers: Buffers, dimensions: int) -> Access | None:
    """Return an affine view's addresses; None where an index is computed."""
    return _access(view, buffers[view.buffer], dimensions)


@lru_cache(maxsize=4096)
def _access(view: View, buffer: Buffer, dimensions: int) -> Access | None:
    affine = [index for index in view.indices if isinstance(index, Index)]
    if len(affine) < len(view.indices):
        return None
    rows = [row_length(buffer, axis) for axis in range(len(affine))]
    strides = tuple(
        sum_of([(index.coefficients[d], row) for index, row in zip(affine, rows, strict=True)])
        for d in range(dimensions)
    )
    base = sum_of([(1, _product(index.offset, row)) for index, row in zip(affine, rows, strict=True)])
    steps = tuple(index.coefficients for index in affine)
    return Access(
        buffer=buffer,
        strides=strides,
        base=base,
        steps=steps,
        offsets=tuple(index.offset for index in affine),
    )


def places(axis: Iterable[tuple[int, int]], sizes: Sequence[int]) -> tuple[int, int]:
    """Return how many places along an axis a box of points touches, and how far apart they are.

    ``axis``: the dimensions that move along it, and how far each, without sign; ``sizes``: of the box.
    """
    moving = [(sizes[d], step) for d, step in axis if sizes[d] > 1]
    unit = gcd(*(step for _, step in moving)) or 1
    reached = 1 + sum(step // unit * (n - 1) for n, step in moving)
    return min(reached, prod(n for n, _ in moving)), unit


def row_length(buffer: Buffer, axis: int) -> IntExpression:
    """Return how many elements a step along an axis goes."""
    return product_of(buffer.shape[axis + 1 :])


def _product(a: IntExpression, b: IntExpression) -> IntExpression:
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.value * b.value)
    return ZERO if ZERO in (a, b) else product_of([a, b])


def scaled(stride: IntExpression, position: IntExpression) -> IntExpression:
    """Return ``stride * position``, which ``sum_of`` takes apart where the stride is a number."""
    return _product(stride, position)


def kept_dimensions(hom: MdHom) -> tuple[int, ...]:
    """Return the dimensions that the results keep."""
    keeps = (Order.CONCATENATE, Order.PREFIX)
    return tuple(d for d, operator in enumerate(hom.combine) if operator.order in keeps)


def reduced_dimensions(hom: MdHom) -> tuple[int, ...]:
    """Return the dimensions whose points are combined into one."""
    return tuple(d for d, operator in enumerate(hom.combine) if operator.order is Order.POINTWISE)


def known(extent: IntExpression) -> int | None:
    """Return an extent that is a number."""
    return extent.value if isinstance(extent, Number) else None


def names_used(hom: MdHom, buffers: Buffers) -> tuple[str, ...]:
    """Return the parameters and host iterators that an md_hom's code may need, sorted."""
    found: set[str] = set()
    for expression in _integers(hom, buffers):
        found |= names_in(expression)
    for value in expressions_of(hom):
        found |= {part.name for part in walk(value) if isinstance(part, ParameterValue)}
    return tuple(sorted(found - set(hom.iterators)))


def _integers(hom: MdHom, buffers: Buffers) -> Iterator[IntExpression]:
    yield from hom.extents
    yield from (condition for condition in (hom.guard, hom.written) if condition is not None)
    for view in (*hom.inputs, *hom.outputs):
        yield from (index.offset for index in view.indices if isinstance(index, Index))
        yield from buffers[view.buffer].shape[1:]
    for view in hom.inputs:  # an index that may lie outside is compared with the first extent, too
        yield from buffers[view.buffer].shape[:1]


def inner_reads(hom: MdHom) -> frozenset[int]:
    """Return the inputs that the scalar function reads: at every point, not at kept points alone."""
    return frozenset(read_positions(*hom.terms))


def points_before_lines(hom: MdHom, buffers: Buffers, d: int, width: int) -> IntExpression:
    """Return how many points along a dimension come before vectors of which as many as possible lie in lines.

    Rows in which they lie alike are counted, of buffers of which it is known where they begin. A store counts
    twice. 0 where nothing is gained by it; less than ``width``, and no number where rows begin at one that is
    computed.
    """
    begins = [
        begin
        for view in (*hom.outputs, *hom.outputs, *hom.inputs)
        if (begin := _begin_of_rows(view, hom, buffers, d, width)) is not None
    ]
    first = begins[0] if begins else ZERO
    if isinstance(first, Number):
        first = ZERO
    far = [part for begin in begins if isinstance(part := sum_of([(1, begin), (-1, first)]), Number)]
    whole = [sum((part.value + points) % width == 0 for part in far) for points in range(width)]
    best = max(range(width), key=lambda points: (whole[points], -points))
    if first != ZERO:
        before = Operation("%", (sum_of([(width - 1, first), (1, Number(best))]), Number(width)))
        return before if whole[best] > 1 else ZERO
    return Number(best if whole[best] > whole[0] + 1 else 0)


def _begin_of_rows(view: View, hom: MdHom, buffers: Buffers, d: int, width: int) -> IntExpression | None:
    """Return how many elements behind a multiple of a vector's length the points 0 of a dimension lie.

    None where that is not known, or not the same in all rows.
    """
    buffer, size = buffers[view.buffer], buffers[view.buffer].type.size
    access = access_of(view, buffers, len(hom.extents))
    if access is None or buffer.behind is None or not access.is_unit(d) or buffer.behind % size:
        return None
    found: list[tuple[int, IntExpression]] = [(1, Number(buffer.behind // size))]
    for axis, (steps, offset) in enumerate(zip(access.steps, access.offsets, strict=True)):
        row = row_length(buffer, axis)
        if not isinstance(row, Number):
            return None
        if row.value % width:
            if any(step for k, step in enumerate(steps) if k != d):
                return None
            found.append((row.value, offset))
    begin = sum_of(found)
    return Number(begin.value % width) if isinstance(begin, Number) else begin
