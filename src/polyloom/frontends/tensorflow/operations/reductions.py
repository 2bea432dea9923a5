"""Reductions, positions of extremes, cumulative sums."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.context import Context, Operation, Table, axes, axis, only
from polyloom.frontends.graph.operations.elementwise import cast, mapped
from polyloom.frontends.graph.operations.movement import flipped
from polyloom.frontends.graph.operations.ranking import ranked
from polyloom.frontends.graph.operations.reductions import arg_extreme, cumulative, mean, reduced
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value, expanded, squeezed, unsqueezed
from polyloom.frontends.tensorflow.operations.elementwise import element_type_of
from polyloom.ir.expressions import CompareOp, Expression
from polyloom.ir.program import Combine
from polyloom.ir.types import ElementType


def _axes(c: Context) -> list[int]:
    """Return the axes that input 1 names; TensorFlow lets an axis be named twice in no case."""
    return axes(c.integers(1, "its axes"), c.input().rank)


def _keep(c: Context) -> bool:
    return bool(c.attribute("keep_dims", False))


def _reduction(combine: Combine) -> Operation:
    def operation(c: Context) -> Sequence[Value]:
        return only(reduced(c.builder, combine, c.input(), _axes(c), keep=_keep(c)))

    return operation


def _mean(c: Context) -> Sequence[Value]:
    return only(mean(c.builder, c.input(), _axes(c), keep=_keep(c), hint=""))


def _truth(combine: Combine) -> Operation:
    """All and any: the minimum and the maximum of 0 and 1."""

    def operation(c: Context) -> Sequence[Value]:
        numbers = cast(c.builder, c.input(), ElementType.UINT8, "numbers")
        found = reduced(c.builder, combine, numbers, _axes(c), keep=_keep(c), hint="found")
        return only(cast(c.builder, found, ElementType.BOOL))

    return operation


def _position(*, largest: bool) -> Operation:
    def operation(c: Context) -> Sequence[Value]:
        x = c.input()
        at = axis(c.whole(1, "its axis", 0), x.rank)
        kind = element_type_of(c, "output_type", ElementType.INT64)
        found = arg_extreme(c.builder, x, at, largest=largest, last=False, kind=kind)
        return only(squeezed(found, [at]))

    return operation


def _cumulative(c: Context) -> Sequence[Value]:
    b, x = c.builder, c.input()
    at = axis(c.whole(1, "its axis"), x.rank)
    backwards = bool(c.attribute("reverse", False))
    operand = flipped(x, at) if backwards else x
    strict = bool(c.attribute("exclusive", False))
    found = cumulative(b, operand, at, strict=strict, product=c.node.op == "Cumprod")
    return only(flipped(found, at) if backwards else found)


def _half_squares(c: Context) -> Sequence[Value]:
    """L2Loss: half the sum of squares."""
    b, x = c.builder, c.input()
    total = reduced(b, Combine.ADD, x, range(x.rank), scalar.square, keep=False, hint="squares")
    return only(mapped(b, lambda s: scalar.multiply(s, 0.5), total))


def _norm(c: Context) -> Sequence[Value]:
    """EuclideanNorm."""
    b, x = c.builder, c.input()
    total = reduced(b, Combine.ADD, x, _axes(c), scalar.square, keep=_keep(c), hint="squares")
    return only(mapped(b, scalar.sqrt, total))


def _largest(c: Context) -> Sequence[Value]:
    """TopKV2: values and positions, along the last axis."""
    x = c.input()
    kind = element_type_of(c, "index_type", ElementType.INT32)
    return ranked(c.builder, x, axis(-1, x.rank), c.whole(1, "its number"), largest=True, kind=kind)


def _counted(op: CompareOp) -> Operation:
    """LowerBound, UpperBound(rows, values): how many elements of a sorted row are below a value."""

    def operation(c: Context) -> Sequence[Value]:
        b, rows, values = c.builder, c.input(0), c.input(1)
        if rows.rank != 2 or values.rank != 2 or rows.shape[0] != values.shape[0]:
            raise Refused(f"rows {list(rows.shape)} and values {list(values.shape)}")
        kind = element_type_of(c, "out_type", ElementType.INT32)
        shape = (*values.shape, rows.shape[1])
        operands = [expanded(unsqueezed(rows, [1]), shape), expanded(unsqueezed(values, [2]), shape)]

        def below(row: Expression, value: Expression) -> Expression:
            return scalar.select(scalar.compare(op, row, value), scalar.number(1, kind), 0)

        return only(reduced(b, Combine.ADD, operands, [2], below, keep=False))

    return operation


OPERATIONS: Table = {
    "EuclideanNorm": _norm,
    "TopKV2": _largest,
    "LowerBound": _counted(CompareOp.LT),
    "UpperBound": _counted(CompareOp.LE),
    "Sum": _reduction(Combine.ADD),
    "Prod": _reduction(Combine.MULTIPLY),
    "Max": _reduction(Combine.MAXIMUM),
    "Min": _reduction(Combine.MINIMUM),
    "Mean": _mean,
    "All": _truth(Combine.MINIMUM),
    "Any": _truth(Combine.MAXIMUM),
    "ArgMax": _position(largest=True),
    "ArgMin": _position(largest=False),
    "Cumsum": _cumulative,
    "Cumprod": _cumulative,
    "L2Loss": _half_squares,
}
