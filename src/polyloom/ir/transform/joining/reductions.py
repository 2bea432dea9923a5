"""Reductions of the same points as one: what both read is loaded once, and one loop does it.

Before: ``s = sum of x[i]; t = sum of x[i] * y[i]``, two md_homs. After: one with two results, whose operator
combines each with its own: ``(s, t) + (x[i], x[i] * y[i])``.

Only where each point reads an element of its own that both need: loading it is what such reductions take.
Where elements are used at many points, as in products, tiles of one result each are better.

Source: loop fusion (Kennedy and McKinley 1993), of loops whose iterations combine; an operator on tuples is
md_poly's, Sec. 3.1. Not in the papers: this use of it.
"""

from __future__ import annotations

from dataclasses import replace

from polyloom.ir.expressions import Binary, BinaryOp, Compare, Expression, Read, Select
from polyloom.ir.host import CombineOperator, Combiner, Index, MdHom, Order, View
from polyloom.ir.rebuild import with_reads
from polyloom.ir.transform.fuse_maps import (
    combined_dimensions,
    permuted_condition,
    with_inputs_of,
    without_unread_inputs,
)
from polyloom.ir.transform.joining.elements import are_apart

MOST_RESULTS = 8
"""How many results a joined reduction has: each takes registers for the totals of a vector or several."""

_ALONE = frozenset({BinaryOp.ADD, BinaryOp.MULTIPLY, BinaryOp.MAXIMUM, BinaryOp.MINIMUM})


def joined_reduction(a: MdHom, b: MdHom) -> MdHom | None:
    """Return one reduction with the results of two; None where they are not so, or share no stream."""
    if not (_is_plain(a) and _is_plain(b)) or a.extents != b.extents or not _are_independent(a, b):
        return None
    if len(a.outputs) + len(b.outputs) > MOST_RESULTS or not _shares_a_stream(a, b):
        return None
    if len({term.type.size for term in (*a.terms, *b.terms)}) > 1:
        return None
    combine = _joined_operators(a, b)
    same = {k: k for k in range(len(a.extents))}
    conditions = [(a.guard, b.guard), (a.written, b.written)]
    if combine is None or any(permuted_condition(x, a, b, same) != y for x, y in conditions):
        return None
    inputs, moved = with_inputs_of(b.inputs, a, b, same, {})
    behind = len(inputs)

    def finished(value: Expression | None) -> Expression | None:
        """Return what ends a result of ``a``: results have positions below 0 while inputs move."""
        if value is None:
            return None
        count = len(a.inputs)
        apart = with_reads(value, lambda p: p if p < count else count - p - 1)
        return with_reads(moved(apart), lambda p: p if p >= 0 else behind - p - 1)

    def shifted(value: Expression | None) -> Expression | None:
        """Return what ends a result of ``b``, behind more inputs and the results of ``a``."""
        more = behind + len(a.outputs) - len(b.inputs)
        return None if value is None else with_reads(value, lambda p: p if p < len(b.inputs) else p + more)

    made = replace(
        b,
        inputs=inputs,
        outputs=(*a.outputs, *b.outputs),
        terms=(*map(moved, a.terms), *b.terms),
        combine=combine,
        initial=(*(None if v is None else moved(v) for v in a.initial), *b.initial),
        finish=(*map(finished, a.finish), *map(shifted, b.finish)),
        name=f"{a.name}_{b.name}",
    )
    return without_unread_inputs(made)


def _is_plain(node: MdHom) -> bool:
    """Whether an md_hom reduces, each result alone, into places that no data say."""
    if not combined_dimensions(node) or any(
        not isinstance(i, Index) for v in node.outputs for i in v.indices
    ):
        return False
    return all(
        o.order is Order.CONCATENATE or (o.order is Order.POINTWISE and _combines_each_alone(o.combiner))
        for o in node.combine
    )


def _combines_each_alone(combiner: Combiner | None) -> bool:
    """Whether an operator combines each result with its own, whatever it starts from."""
    if combiner is None or not combiner.associative or not combiner.commutative:
        return False
    return all(
        _is_of_its_own(result, o, len(combiner.results)) and neutral is not None
        for o, (result, neutral) in enumerate(zip(combiner.results, combiner.neutral, strict=True))
    )


def _is_of_its_own(result: Expression, output: int, count: int) -> bool:
    """Whether a result is made of those of its own two operands: by an operator or a comparison."""
    left, right = Read(output, result.type), Read(count + output, result.type)
    match result:
        case Binary(op=op, left=a, right=b):
            return op in _ALONE and (a, b) == (left, right)
        case Select(condition=Compare(left=c, right=d), then=a, otherwise=b):
            return {a, b} == {c, d} == {left, right}
        case _:
            return False


def _are_independent(a: MdHom, b: MdHom) -> bool:
    """Whether neither writes an element that the other one touches."""
    pairs = [(x, y) for x in a.outputs for y in (*b.inputs, *b.outputs)]
    pairs += [(x, y) for x in a.inputs for y in b.outputs]
    return all(x.buffer != y.buffer or are_apart(x, y, a) for x, y in pairs)


def _shares_a_stream(a: MdHom, b: MdHom) -> bool:
    """Whether both read, at each point, the same element, which no other point reads."""
    return any(_is_stream(view) and view in b.inputs for view in a.inputs)


def _is_stream(view: View) -> bool:
    columns = zip(*(i.coefficients for i in view.indices if isinstance(i, Index)), strict=True)
    return bool(view.indices) and all(any(column) for column in columns)


def _joined_operators(a: MdHom, b: MdHom) -> tuple[CombineOperator, ...] | None:
    """Return an operator for each dimension on the results of both; None where they are not alike."""
    if [o.order for o in a.combine] != [o.order for o in b.combine]:
        return None
    return tuple(
        CombineOperator(x.order, _both(x.combiner, y.combiner) if x.combiner and y.combiner else None)
        for x, y in zip(a.combine, b.combine, strict=True)
    )


def _both(a: Combiner, b: Combiner) -> Combiner:
    """Return ``(a, b)``: what each of them makes of its own results."""
    ours, theirs = len(a.results), len(b.results)
    more = ours + theirs

    def first(p: int) -> int:
        return p if p < ours else p - ours + more

    def second(p: int) -> int:
        return p + ours if p < theirs else p - theirs + more + ours

    return Combiner(
        name=f"{a.name}, {b.name}",
        results=(*(with_reads(r, first) for r in a.results), *(with_reads(r, second) for r in b.results)),
        neutral=(*a.neutral, *b.neutral),
    )
