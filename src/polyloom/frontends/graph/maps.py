"""Operations of a table that are maps: one scalar function of one, two or any number of inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.builder import Function
from polyloom.frontends.graph.context import Context, TensorOperation, only
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value, unsqueezed
from polyloom.ir.expressions import CompareOp, Expression
from polyloom.ir.scalar_functions.function import BinaryFunction


def unary(function: Function) -> TensorOperation:
    """Return the operation that applies a function to its input."""
    return lambda c: only(mapped(c.builder, function, c.input()))


def binary(function: Function) -> TensorOperation:
    """Return the operation that applies a function to its two inputs, of one type."""

    def operation(c: Context) -> Sequence[Value]:
        left, right = c.input(0), c.input(1)
        if left.type is not right.type:
            raise Refused(f"operands of types {left.type.value} and {right.type.value}")
        if c.version < 7 and c.attribute("axis") is not None:
            at = c.axis("axis", left.rank)
            right = unsqueezed(right, range(right.rank, left.rank - at))
        return only(mapped(c.builder, function, left, right))

    return operation


def variadic(function: Callable[[Expression, Expression], Expression]) -> TensorOperation:
    """Return the operation that folds its inputs."""

    def operation(c: Context) -> Sequence[Value]:
        return only(mapped(c.builder, lambda *xs: reduce(function, xs), *c.inputs))

    return operation


def compared(op: CompareOp) -> TensorOperation:
    """Return a comparison."""
    return binary(lambda a, b: scalar.compare(op, a, b))


def logical(op: BinaryFunction) -> TensorOperation:
    """Return an operation on truth values."""
    return binary(lambda a, b: scalar.logical(op, a, b))


def of_integers(op: BinaryFunction) -> TensorOperation:
    """Return an operation on the bits of integers."""
    return binary(lambda a, b: scalar.bits(op, a, b))
