"""An md_hom over fewer dimensions: those of one point go, neighbours that lie in one row become one.

y[c][h][w] = max(x[c][h][w], 0)  over 64 x 7 x 7     becomes     y[p] = max(x[p], 0)  over 3136

A row of memory is a row whatever its axes are called: vectors run across the ends of short rows, and there
are fewer loops and fewer schedules. Buffers get other shapes here, never other elements. Sizes must be known;
what is not stays as it is, but for the parts of records (``with_longer_rows``). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from polyloom.ir.expressions import Expression, walk
from polyloom.ir.expressions import Iterator as IteratorValue
from polyloom.ir.host import (
    Buffer,
    HostNode,
    HostProgram,
    Index,
    MdHom,
    Order,
    View,
    expressions_of,
    used_buffers,
    uses,
)
from polyloom.ir.naming import fresh
from polyloom.ir.rebuild import rebuilt
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    leaves_in,
    names_in,
    product_of,
    replace_name,
    sum_of,
    with_leaves,
)

Buffers = Mapping[str, Buffer]


@dataclass(frozen=True, kw_only=True)
class Flat:
    """An md_hom over fewer dimensions; ``buffers``: those that it uses, with their shapes for it.

    ``points``: what the iterators before are, in its own.
    """

    hom: MdHom
    buffers: dict[str, Buffer]
    points: dict[str, IntExpression]


def with_fewer_dimensions(hom: MdHom, buffers: Buffers) -> tuple[MdHom, dict[str, Buffer]]:
    """Return an md_hom that does the same over the fewest dimensions, and its buffers' shapes for it."""
    flat = flat_md_hom(hom, buffers)
    return flat.hom, flat.buffers


def flat_md_hom(hom: MdHom, buffers: Buffers) -> Flat:
    """Return an md_hom that does the same over the fewest dimensions."""
    without = without_single_points(hom)
    points = dict[str, IntExpression]()
    for name in hom.iterators:
        points[name] = Name(name) if name in without.iterators else Number(0)
    used = {name: buffers[name] for name in used_buffers(hom)}
    return _merged(Flat(hom=without, buffers=used, points=points))


def _free(hom: MdHom) -> tuple[int, ...]:
    """Return the dimensions that only affine indices speak of."""
    speaks = {
        part.dimension for e in expressions_of(hom) for part in walk(e) if isinstance(part, IteratorValue)
    }
    conditions = [e for e in (hom.guard, hom.written) if e is not None]
    named = frozenset[str]().union(*(names_in(e) for e in conditions))
    orders = (Order.CONCATENATE, Order.POINTWISE)
    return tuple(
        d
        for d, operator in enumerate(hom.combine)
        if operator.order in orders and d not in speaks and hom.iterators[d] not in named
    )


def _size(expression: IntExpression) -> int | None:
    return expression.value if isinstance(expression, Number) else None


def _number(expression: IntExpression) -> int:
    assert isinstance(expression, Number), expression
    return expression.value


# Dimensions of one point


def without_single_points(hom: MdHom) -> MdHom:
    """Leave out dimensions of one point; the last one stays, and so does the last of a reduction."""
    reduced = [d for d, operator in enumerate(hom.combine) if operator.order is Order.POINTWISE]
    left, reducing = len(hom.extents), len(reduced)
    gone: set[int] = set()
    for d in _free(hom):
        last = left == 1 or (d in reduced and reducing == 1)
        if _size(hom.extents[d]) == 1 and not last:
            gone.add(d)
            left -= 1
            reducing -= d in reduced
    return _without(hom, gone) if gone else hom


def _without(hom: MdHom, gone: set[int]) -> MdHom:
    """Return an md_hom without dimensions that are 0 wherever an index uses them."""
    stay = [d for d in range(len(hom.extents)) if d not in gone]

    def index(found: Index) -> Index:
        return Index(tuple(found.coefficients[d] for d in stay), found.offset)

    def iterator(part: Expression) -> Expression | None:
        return (
            IteratorValue(stay.index(part.dimension), part.type) if isinstance(part, IteratorValue) else None
        )

    changed = _with_indices(hom, index, lambda e: rebuilt(e, iterator))
    return replace(
        changed,
        iterators=tuple(hom.iterators[d] for d in stay),
        extents=tuple(hom.extents[d] for d in stay),
        combine=tuple(hom.combine[d] for d in stay),
    )


def _with_indices(
    hom: MdHom, index: Callable[[Index], Index], value: Callable[[Expression], Expression]
) -> MdHom:
    """Return an md_hom with other affine indices and other scalar functions; its dimensions are to follow."""

    def view(found: View) -> View:
        return replace(
            found, indices=tuple(index(i) if isinstance(i, Index) else value(i) for i in found.indices)
        )

    def each(found: tuple[Expression | None, ...]) -> tuple[Expression | None, ...]:
        return tuple(None if e is None else value(e) for e in found)

    return replace(
        hom,
        inputs=tuple(map(view, hom.inputs)),
        outputs=tuple(map(view, hom.outputs)),
        terms=tuple(map(value, hom.terms)),
        initial=each(hom.initial),
        finish=each(hom.finish),
    )


# Dimensions that lie in one row


def _merged(flat: Flat) -> Flat:
    """Merge pairs of dimensions as long as there are any."""
    hom, buffers, points = flat.hom, flat.buffers, flat.points
    while True:
        pairs = permutations(_free(hom), 2)
        possible = ((o, i, _rows(hom, buffers, o, i)) for o, i in pairs if _may_merge(hom, o, i))
        found = next(((o, i, rows) for o, i, rows in possible if rows is not None), None)
        if found is None:
            return Flat(hom=hom, buffers=buffers, points=points)
        outer, inner, rows = found
        hom, buffers = _flattened(hom, buffers, rows)
        before, length = hom, hom.extents[inner]
        hom = _with_one_for_two(hom, outer, inner)
        (joined,) = set(hom.iterators) - set(before.iterators)
        for sign, d in (("/", outer), ("%", inner)):
            part = Operation(sign, (Name(joined), length))
            points = {n: replace_name(p, before.iterators[d], part) for n, p in points.items()}


def _may_merge(hom: MdHom, outer: int, inner: int) -> bool:
    """Whether operators allow it: they are one, and where it does not commute, points keep their order."""
    return _size(hom.extents[outer]) is not None and _may_be_one(hom, outer, inner)


def _may_be_one(hom: MdHom, outer: int, inner: int) -> bool:
    """Return the same where the outer size may be open."""
    operator = hom.combine[outer]
    if hom.combine[inner] != operator or _size(hom.extents[inner]) is None:
        return False
    return operator.order is Order.CONCATENATE or inner == outer + 1


def lie_in_rows(hom: MdHom, d: int, buffers: Buffers) -> bool:
    """Whether a dimension becomes one with another one: its points are parts of longer rows."""
    free = _free(hom)
    return d in free and any(
        _may_merge(hom, o, d) and _rows(hom, buffers, o, d) is not None for o in free if o != d
    )


Axes = frozenset[tuple[str, int]]
"""Axes that become one with the next one: a buffer, and which of its axes."""


def _rows(hom: MdHom, buffers: Buffers, outer: int, inner: int) -> Axes | None:
    """Return what makes a step of ``outer`` as long as all of ``inner``, in every view; None: nothing."""
    axes = _axes_of_rows(hom, buffers, outer, inner)
    open_ = axes is None or any(_size(buffers[name].shape[k]) is None for name, k in axes)
    return None if open_ else axes


def _axes_of_rows(hom: MdHom, buffers: Buffers, outer: int, inner: int) -> Axes | None:
    """Return the same where outer extents of arrays may be open."""
    size, axes = _number(hom.extents[inner]), set[tuple[str, int]]()
    for view in (*hom.inputs, *hom.outputs):
        outers, inners = _axes(view, outer), _axes(view, inner)
        if not outers and not inners:
            continue
        if len(outers) != 1 or len(inners) != 1:
            return None
        (k, far), (m, near) = outers[0], inners[0]
        if m == k + 1:
            shape = buffers[view.buffer].shape
            length = _size(shape[m])
            if length is None:
                return None
            far *= length
            axes.add((view.buffer, k))
        elif m != k:
            return None
        if far != near * size:
            return None
    apart = not any((name, k + 1) in axes for name, k in axes)
    return frozenset(axes) if apart and _are_affine(hom, axes) else None


def _axes(view: View, d: int) -> list[tuple[int, int]]:
    """Return the axes along which a dimension moves a view, and how far."""
    indices = enumerate(view.indices)
    return [(k, i.coefficients[d]) for k, i in indices if isinstance(i, Index) and i.coefficients[d]]


def _are_affine(hom: MdHom, axes: set[tuple[str, int]]) -> bool:
    """Whether every view of these buffers has affine indices at these axes."""
    views = (*hom.inputs, *hom.outputs)
    pairs = ((v.indices[k], v.indices[k + 1]) for v in views for b, k in axes if b == v.buffer)
    return all(isinstance(index, Index) for pair in pairs for index in pair)


def _flattened(hom: MdHom, buffers: dict[str, Buffer], axes: Axes) -> tuple[MdHom, dict[str, Buffer]]:
    """Return the md_hom over buffers of which some axes are one with the next."""
    shapes = dict(buffers)
    for name, k in sorted(axes, reverse=True):
        shape = shapes[name].shape
        length = product_of(shape[k : k + 2])
        shapes[name] = replace(shapes[name], shape=(*shape[:k], length, *shape[k + 2 :]))

    def view(found: View) -> View:
        indices = list(found.indices)
        for name, k in sorted(axes, reverse=True):
            if name == found.buffer:
                row = _number(buffers[name].shape[k + 1])
                indices[k : k + 2] = [_joined(indices[k], indices[k + 1], row)]
        return replace(found, indices=tuple(indices))

    return replace(hom, inputs=tuple(map(view, hom.inputs)), outputs=tuple(map(view, hom.outputs))), shapes


def _joined(outer: Index | Expression, inner: Index | Expression, row: int) -> Index:
    assert isinstance(outer, Index) and isinstance(inner, Index)
    pairs = zip(outer.coefficients, inner.coefficients, strict=True)
    return Index(tuple(row * a + b for a, b in pairs), sum_of([(row, outer.offset), (1, inner.offset)]))


def _with_one_for_two(hom: MdHom, outer: int, inner: int) -> MdHom:
    """Return the md_hom with one dimension in place of two, where the outer one was."""
    names, extents = list(hom.iterators), list(hom.extents)
    name = fresh(f"{names[outer]}_{names[inner]}", names)
    names[outer], extents[outer] = name, product_of((extents[outer], extents[inner]))

    def index(found: Index) -> Index:
        coefficients = list(found.coefficients)
        coefficients[outer] = coefficients[inner]
        return Index(tuple(coefficients), found.offset)

    merged = _with_indices(hom, index, lambda e: e)
    return _without(replace(merged, iterators=tuple(names), extents=tuple(extents)), {inner})


# Rows of open length


def with_longer_rows(program: HostProgram) -> HostProgram:
    """Return the program with rows of records of known length as rows of their elements.

    ``out[y][x][c] = .. in[y + 1][x][c] ..`` over h x w x 3 becomes a map over h x 3 w of arrays ``[h][3 w]``.
    It is done of arrays that all nodes go through so.
    """
    buffers = {b.name: b for b in program.buffers}
    nodes = list(leaves_in(program.body))
    found = {node: pair for node in nodes if isinstance(node, MdHom) and (pair := _open_rows(node, buffers))}
    while True:
        apart = {axis for node, pair in found.items() for axis in pair[2] if not _all_so(axis, nodes, found)}
        if not apart:
            break
        found = {node: pair for node, pair in found.items() if not pair[2] & apart}
    axes = frozenset(axis for _, _, own in found.values() for axis in own)
    shapes = {name: _joined_axes(buffer, axes) for name, buffer in buffers.items()}

    def change(node: HostNode) -> tuple[HostNode, ...]:
        if not isinstance(node, MdHom) or node not in found:
            return (node,)
        outer, inner, own = found[node]
        flat, _ = _flattened(node, buffers, own)
        return (_with_one_for_two(flat, outer, inner),)

    if not found:
        return program
    body = with_leaves(program.body, change)
    return replace(program, buffers=tuple(shapes[b.name] for b in program.buffers), body=body)


def _open_rows(hom: MdHom, buffers: Buffers) -> tuple[int, int, Axes] | None:
    """Return an open dimension and a known one that are one through axes of arrays; None where none are."""
    for outer, inner in permutations(_free(hom), 2):
        if _size(hom.extents[outer]) is None and _may_be_one(hom, outer, inner):
            axes = _axes_of_rows(hom, buffers, outer, inner)
            if axes:
                return outer, inner, axes
    return None


def _all_so(
    axis: tuple[str, int], nodes: Sequence[HostNode], found: Mapping[MdHom, tuple[int, int, Axes]]
) -> bool:
    """Whether all nodes that touch an array go through an axis of it and the next one as one."""
    touching = [node for node in nodes if axis[0] in uses([node]).all]
    return all(isinstance(node, MdHom) and node in found and axis in found[node][2] for node in touching)


def _joined_axes(buffer: Buffer, axes: Axes) -> Buffer:
    shape, rows = buffer.shape, buffer.rows
    for _, k in sorted((axis for axis in axes if axis[0] == buffer.name), reverse=True):
        if k == 0 and rows is not None:
            rows = (product_of((rows[0], shape[1])), product_of((rows[1], shape[1])))
        shape = (*shape[:k], product_of(shape[k : k + 2]), *shape[k + 2 :])
    return replace(buffer, shape=shape, rows=rows)
