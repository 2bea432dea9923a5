"""Positions that are data: one-hot, gather, embedding, scatter, as comparisons with 0, 1, 2, ..."""

from __future__ import annotations

from polyloom.frontends.graph.basis import (
    Builder,
    Combine,
    CompareOp,
    ElementType,
    Expression,
    Term,
    Value,
    expanded,
    iterators,
    refuse_if,
    scalar,
    transposed,
    unsqueezed,
)
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.operations.reductions import iota


def wrapped(b: Builder, positions: Value, size: int) -> Value:
    """Return positions with negative ones counted from the end."""
    known = b.known_few(positions)
    if positions.type.value.startswith("u") or (known is not None and (known >= 0).all()):
        return positions
    return mapped(
        b,
        lambda p: scalar.select(scalar.compare(CompareOp.LT, p, 0), scalar.add(p, size), p),
        positions,
        hint="positions",
    )


def one_hot(b: Builder, positions: Value, size: int, axis: int, on: Value, off: Value) -> Value:
    """Return the scalar ``on`` where a new axis of ``size`` is at the position, else ``off``."""
    at = unsqueezed(positions, [axis])
    numbers = unsqueezed(iota(b, size, positions.type), [k for k in range(at.rank) if k != axis])
    return mapped(
        b,
        lambda p, k, yes, no: scalar.select(scalar.compare(CompareOp.EQ, p, k), yes, no),
        at,
        numbers,
        on,
        off,
    )


def _chosen_element(p: Expression, k: Expression, x: Expression) -> Expression:
    zero = scalar.number(0, x.type)
    return scalar.select(scalar.compare(CompareOp.EQ, p, k), x, zero)


def chosen(b: Builder, value: Value, axis: int, positions: Value, hint: str = "") -> Value:
    """Return the slices of ``value`` at ``positions`` of an axis; the positions' shape stands in its place.

    ``y[a][p][z] += positions[p] == iota[k] ? x[a][k][z] : 0``. Positions outside give 0.
    """
    size = value.shape[axis]
    before, count = axis, positions.rank
    rest = value.rank - axis - 1
    axes = iterators(before + count + rest + 1)
    outer, inner, last, k = axes[:before], axes[before : before + count], axes[before + count : -1], axes[-1]
    terms = [
        Term(positions, inner),
        Term(iota(b, size, positions.type), (k,)),
        Term(value, (*outer, k, *last)),
    ]
    shape = [*value.shape[:axis], *positions.shape, *value.shape[axis + 1 :]]
    write = (*outer, *inner, *last)
    combine = Combine.MAXIMUM if value.type is ElementType.BOOL else Combine.ADD
    return b.statement([*shape, size], terms, shape, write, _chosen_element, combine, hint)


def gathered_elements(b: Builder, value: Value, axis: int, positions: Value) -> Value:
    """Return ``y[i][j] = x[positions[i][j]][j]`` (axis 0)."""
    size = value.shape[axis]
    axes = iterators(positions.rank + 1)
    own, k = axes[:-1], axes[-1]
    from_ = tuple(k if a == axis else own[a] for a in range(value.rank))
    terms = [Term(positions, own), Term(iota(b, size, positions.type), (k,)), Term(value, from_)]
    domain = [*positions.shape, size]
    combine = Combine.MAXIMUM if value.type is ElementType.BOOL else Combine.ADD
    return b.statement(domain, terms, positions.shape, own, _chosen_element, combine)


def reversed_sequences(b: Builder, x: Value, lengths: Value, along: int, batch: int) -> Value:
    """Return ``x`` with the first ``lengths[n]`` elements along an axis reversed, by ``n`` of ``batch``."""
    refuse_if(
        lengths.shape != (x.shape[batch],) or along == batch,
        f"lengths {list(lengths.shape)} of axis {batch} of the shape {list(x.shape)}",
    )
    numbers = unsqueezed(iota(b, x.shape[along], lengths.type), [0])

    def place(t: Expression, length: Expression) -> Expression:
        back = scalar.subtract(scalar.subtract(length, 1), t)
        return scalar.select(scalar.compare(CompareOp.LT, t, length), back, t)

    places = mapped(b, place, numbers, unsqueezed(lengths, [1]), hint="places")
    if batch > along:
        places = transposed(places, (1, 0))
    wide = unsqueezed(places, [k for k in range(x.rank) if k not in (along, batch)])
    return gathered_elements(b, x, along, expanded(wide, x.shape))


def triangle(b: Builder, rows: int, columns: int, offset: int, *, upper: bool) -> Value:
    """Return the truth values of a triangle of a matrix: ``column - row >= offset`` (or ``<=``)."""
    row = unsqueezed(iota(b, rows, ElementType.INT32), [1])
    column = unsqueezed(iota(b, columns, ElementType.INT32), [0])
    op = CompareOp.GE if upper else CompareOp.LE
    return mapped(
        b, lambda r, c: scalar.compare(op, scalar.subtract(c, r), offset), row, column, hint="triangle"
    )


def masked(b: Builder, value: Value, condition: Value) -> Value:
    """Return the value where the condition holds, else 0."""
    wide = expanded(condition, value.shape)
    return mapped(b, lambda c, x: scalar.select(c, x, scalar.number(0, x.type)), wide, value)
