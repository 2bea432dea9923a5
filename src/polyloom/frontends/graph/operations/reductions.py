"""Reductions along axes, and what is computed by them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod

import numpy as np

from polyloom.frontends.graph.basis import (
    MOST_MADE,
    Builder,
    Combine,
    CompareOp,
    ElementType,
    Expression,
    Function,
    Term,
    Value,
    check_constant,
    expanded,
    is_extreme,
    iterators,
    refuse_if,
    scalar,
    sliced,
    squeezed,
    unsqueezed,
)
from polyloom.frontends.graph.operations.elementwise import halves_wide, mapped
from polyloom.ir.reductions import neutral


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


@halves_wide
def mean(b: Builder, value: Value, axes: Collection[int], *, keep: bool = True, hint: str = "mean") -> Value:
    """Return the mean along axes: the sum, then divided by the number of elements (0 of none)."""
    count = prod(value.shape[k] for k in axes)
    total = reduced(b, Combine.ADD, value, axes, keep=keep, hint="sum" if count != 1 else hint)
    return mapped(b, lambda x: scalar.divide(x, count), total, hint=hint) if count != 1 else total


@halves_wide
def variance(b: Builder, centred: Value, axes: Collection[int], correction: float = 0) -> Value:
    """Return the sum of squares of centred elements along axes over ``count - correction``, or over 0."""
    count = max(prod(centred.shape[k] for k in axes) - correction, 0)
    total = reduced(b, Combine.ADD, centred, axes, scalar.square, hint="squares")
    return mapped(b, lambda x: scalar.divide(x, count), total, hint="variance")


def _is_there(x: Expression) -> Expression:
    return scalar.select(scalar.equal(x, 0), scalar.number(0, x.type), 1)


def norm_parts(order: float) -> tuple[Function, Function]:
    """Return what a norm adds up of each element, and what it makes of the sum; of order 0 it counts.

    Raises ``Refused``.
    """
    refuse_if(not np.isfinite(order), f"the norm of order {order}")
    if order == 0:
        return _is_there, _same
    if order in (1, 2):
        return (scalar.absolute, _same) if order == 1 else (scalar.square, scalar.sqrt)
    return lambda v: scalar.power(scalar.absolute(v), order), lambda v: scalar.power(v, 1 / order)


@halves_wide
def norm(
    b: Builder,
    values: Value | Sequence[Value],
    axes: Collection[int],
    order: float,
    difference: Function = _same,
    *,
    keep: bool = True,
) -> Value:
    """Return the norm along axes, of several values that of their ``difference``; at infinity the extreme.

    Of order 0 it is how many elements are not 0.
    """
    if np.isinf(order):
        combine = Combine.MAXIMUM if order > 0 else Combine.MINIMUM
        return reduced(b, combine, values, axes, lambda *v: scalar.absolute(difference(*v)), keep=keep)
    each, root = norm_parts(order)
    hint = "" if order in (0, 1) else "powers"
    total = reduced(b, Combine.ADD, values, axes, lambda *v: each(difference(*v)), keep=keep, hint=hint)
    return total if order in (0, 1) else mapped(b, root, total)


def iota(b: Builder, size: int, kind: ElementType) -> Value:
    """Return the constant 0, 1, 2, ... Raises ``Refused`` for too many."""
    check_constant([size], kind.size)
    refuse_if(size * kind.size > MOST_MADE, f"numbers of {size} positions")
    name = f"iota_{size}_{kind.value}"
    return b.shared_constant(name, lambda: np.arange(size).astype(kind.dtype))


def arg_extreme(
    b: Builder, value: Value, axis: int, *, largest: bool, last: bool, kind: ElementType
) -> Value:
    """Return the position of the largest or smallest element along an axis, which stays with size 1.

    ``m = max(x)``, then the first (or last) position whose element is ``m``; NaN is the extreme, as in NumPy.
    """
    size = value.shape[axis]
    refuse_if(size == 0, "the position of the largest of no elements")
    extreme = reduced(b, Combine.MAXIMUM if largest else Combine.MINIMUM, value, [axis], hint="extreme")
    numbers = unsqueezed(iota(b, size, kind), [k for k in range(value.rank) if k != axis])
    none = -1 if last else size
    operands = [value, expanded(extreme, value.shape), expanded(numbers, value.shape)]
    combine = Combine.MAXIMUM if last else Combine.MINIMUM
    return reduced(
        b,
        combine,
        operands,
        [axis],
        lambda x, m, k: scalar.select(is_extreme(x, m), k, none),
        hint="position",
    )


def cumulative(
    b: Builder, x: Value, at: int, combine: Combine = Combine.ADD, *, strict: bool = False, hint: str = ""
) -> Value:
    """Return ``y[i] combine= k <= i ? x[k] : (what it starts from)`` along an axis; ``strict``: ``k < i``."""
    return _running(b, [x], [], at, combine, _same, strict=strict, hint=hint)


def in_direction(
    b: Builder, x: Value, at: int, function: Callable[[Builder, Value, int], Value], *, backwards: bool
) -> Value:
    """Return what a function makes of an axis, or of the axis the other way round."""
    if not backwards:
        return function(b, x, at)
    turn: Callable[[Value], Value] = lambda v: sliced(v, at, v.shape[at] - 1, -1, v.shape[at])  # noqa: E731
    return turn(function(b, turn(x), at))


def cumulative_extreme(
    b: Builder, x: Value, at: int, kind: ElementType, *, largest: bool
) -> tuple[Value, Value]:
    """Return the largest or smallest element so far along an axis, and where it came last."""
    combine = Combine.MAXIMUM if largest else Combine.MINIMUM
    values = cumulative(b, x, at, combine)
    numbers = unsqueezed(iota(b, x.shape[at], kind), [k for k in range(x.rank) if k != at])
    found = _running(
        b,
        [x, expanded(numbers, x.shape)],
        [values],
        at,
        Combine.MAXIMUM,
        lambda v, k, m: scalar.select(is_extreme(v, m), k, -1),
        hint="places",
    )
    return values, found


@halves_wide
def log_sum_exp(b: Builder, x: Value, axes: Collection[int], *, keep: bool) -> Value:
    """Return ``max + log(sum(exp(x - max)))``; the maximum is taken out where it is finite."""
    largest = reduced(b, Combine.MAXIMUM, x, axes, hint="max")
    base = mapped(b, _finite_or_zero, largest, hint="shift")
    powers = mapped(b, lambda v, m: scalar.exp(scalar.subtract(v, m)), x, base, hint="exp")
    total = reduced(b, Combine.ADD, powers, axes, hint="sum")
    found = mapped(b, lambda s, m: scalar.add(scalar.log(s), m), total, base)
    return found if keep else squeezed(found, sorted(axes))


def _finite_or_zero(m: Expression) -> Expression:
    finite = scalar.compare(CompareOp.LT, scalar.absolute(m), np.inf)
    return scalar.select(finite, m, scalar.number(0, m.type))


def cumulative_log_sum(b: Builder, x: Value, at: int, *, strict: bool = False) -> Value:
    """Return ``log(sum(exp(x[k]), k <= i))`` along an axis, without overflow; of none: log(0)."""
    largest = mapped(b, _finite_or_zero, cumulative(b, x, at, Combine.MAXIMUM, hint="max"), hint="shift")
    total = _running(
        b,
        [x],
        [largest],
        at,
        Combine.ADD,
        lambda v, m: scalar.exp(scalar.subtract(v, m)),
        strict=strict,
        hint="sum",
    )
    return mapped(b, lambda s, m: scalar.add(scalar.log(s), m), total, largest)


def _running(
    b: Builder,
    before: Sequence[Value],
    here: Sequence[Value],
    at: int,
    combine: Combine,
    function: Function,
    *,
    strict: bool = False,
    hint: str = "",
) -> Value:
    """Return ``y[i] combine= function(x[k], z[i])`` over ``k <= i`` along an axis, for all of one shape."""
    shape = before[0].shape
    places = iterators(len(shape) + 1)
    own, k = places[:-1], places[-1]
    other = tuple(k if a == at else own[a] for a in range(len(shape)))
    numbers = iota(b, shape[at], ElementType.INT32)
    op = CompareOp.LT if strict else CompareOp.LE

    def counted(i: Expression, j: Expression, *values: Expression) -> Expression:
        found = function(*values)
        start = neutral(combine, found.type)
        return scalar.select(scalar.compare(op, j, i), found, scalar.number(start, found.type))

    terms = [Term(numbers, (own[at],)), Term(numbers, (k,))]
    terms += [Term(v, other) for v in before] + [Term(v, own) for v in here]
    return b.statement((*shape, shape[at]), terms, shape, own, counted, combine, hint)
