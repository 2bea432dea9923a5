"""Reductions along axes, and what is computed by them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

import numpy as np

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.builder import Builder, Function, Term
from polyloom.frontends.graph.linear import iterators
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value, expanded, unsqueezed
from polyloom.ir.expressions import CompareOp, Expression
from polyloom.ir.program import Combine
from polyloom.ir.types import ElementType


def _same(x: Expression) -> Expression:
    return x


def reduced(
    b: Builder,
    combine: Combine,
    values: Value | Sequence[Value],
    axes: Collection[int],
    function: Function = _same,
    *,
    keep: bool = True,
    hint: str = "",
) -> Value:
    """Return ``function`` of the elements of values of one shape, combined along ``axes``.

    ``y[i] += f(x[i][j])``. ``keep``: the axes stay, with size 1 (a view).
    """
    given = [values] if isinstance(values, Value) else list(values)
    shape = given[0].shape
    places = iterators(len(shape))
    kept = [k for k in range(len(shape)) if k not in axes]
    terms = [Term(v, places) for v in given]
    kind = combine if axes else Combine.CONCATENATE
    write = [places[k] for k in kept]
    result = b.statement(shape, terms, [shape[k] for k in kept], write, function, kind, hint)
    return unsqueezed(result, sorted(axes)) if keep else result


def mean(b: Builder, value: Value, axes: Collection[int], *, keep: bool = True, hint: str = "mean") -> Value:
    """Return the mean along axes: the sum, then divided by the number of elements (0 of none)."""
    count = prod(value.shape[k] for k in axes)
    total = reduced(b, Combine.ADD, value, axes, keep=keep, hint="sum" if count != 1 else hint)
    return mapped(b, lambda x: scalar.divide(x, count), total, hint=hint) if count != 1 else total


def variance(b: Builder, centred: Value, axes: Collection[int], correction: int = 0) -> Value:
    """Return the mean square of centred elements along axes, divided by ``count - correction``."""
    count = prod(centred.shape[k] for k in axes) - correction
    total = reduced(b, Combine.ADD, centred, axes, scalar.square, hint="squares")
    return mapped(b, lambda x: scalar.divide(x, count), total, hint="variance")


def iota(b: Builder, size: int, kind: ElementType) -> Value:
    """Return the constant 0, 1, 2, ..."""
    name = f"iota_{size}_{kind.value}"
    return b.shared_constant(name, lambda: np.arange(size).astype(kind.dtype))


def arg_extreme(
    b: Builder, value: Value, axis: int, *, largest: bool, last: bool, kind: ElementType
) -> Value:
    """Return the position of the largest or smallest element along an axis, which stays with size 1.

    ``m = max(x)``, then the first (or last) position whose element is ``m``. NaN is never found.
    """
    size = value.shape[axis]
    if size == 0:
        raise Refused("the position of the largest of no elements")
    extreme = reduced(b, Combine.MAXIMUM if largest else Combine.MINIMUM, value, [axis], hint="extreme")
    numbers = unsqueezed(iota(b, size, kind), [k for k in range(value.rank) if k != axis])
    none = -1 if last else size

    def position(x: Expression, m: Expression, k: Expression) -> Expression:
        return scalar.select(scalar.compare(CompareOp.EQ, x, m), k, none)

    operands = [value, expanded(extreme, value.shape), expanded(numbers, value.shape)]
    combine = Combine.MAXIMUM if last else Combine.MINIMUM
    return reduced(b, combine, operands, [axis], position, hint="position")


def cumulative(b: Builder, x: Value, at: int, *, strict: bool, product: bool) -> Value:
    """Return ``y[i] += k <= i ? x[k] : 0`` (or ``*=`` and 1) along an axis."""
    size = x.shape[at]
    places = iterators(x.rank + 1)
    own, k = places[:-1], places[-1]
    numbers = iota(b, size, ElementType.INT32)
    copied = b.constant(np.arange(size, dtype=np.int32))
    op = CompareOp.LT if strict else CompareOp.LE
    neutral = 1 if product else 0

    def function(v: Expression, i: Expression, j: Expression) -> Expression:
        return scalar.select(scalar.compare(op, j, i), v, neutral)

    terms = [
        Term(x, tuple(k if a == at else own[a] for a in range(x.rank))),
        Term(numbers, (own[at],)),
        Term(copied, (k,)),
    ]
    combine = Combine.MULTIPLY if product else Combine.ADD
    return b.statement((*x.shape, size), terms, x.shape, own, function, combine)
