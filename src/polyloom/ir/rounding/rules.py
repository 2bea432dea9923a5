"""Scalar operations on values that are known up to an error.

``error`` bounds how far two correct evaluations may be apart, one of them on a device whose functions are as
exact as OpenCL asks for: what reaches an operation through its operands, and what rounding adds. None: every
correct evaluation gives these bits. Infinite: nothing is known.

A value that overflows, or is no number, for all operands within their errors has the error 0.

Source: The OpenCL C Specification 3.0, Sec. 7.4 (relative error as ULPs), full profile. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation import arithmetic
from polyloom.ir.expressions import (
    EXACT_UNARY,
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    ParameterValue,
    Read,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.types import ElementType

Floats = npt.NDArray[np.float64]
NDArray = npt.NDArray[Any]
Error = Floats | None


class Approximate(NamedTuple):
    """Values in their own type, and how far another correct evaluation may be from them."""

    value: NDArray
    error: Error


ULPS = {
    UnaryOp.EXP: 3.0,
    UnaryOp.EXP2: 3.0,
    UnaryOp.LOG: 3.0,
    UnaryOp.LOG2: 3.0,
    UnaryOp.LOG10: 3.0,
    UnaryOp.RSQRT: 2.0,
    UnaryOp.CBRT: 2.0,
    UnaryOp.SIN: 4.0,
    UnaryOp.COS: 4.0,
    UnaryOp.TAN: 5.0,
    UnaryOp.ASIN: 4.0,
    UnaryOp.ACOS: 4.0,
    UnaryOp.ATAN: 5.0,
    UnaryOp.SINH: 4.0,
    UnaryOp.COSH: 4.0,
    UnaryOp.TANH: 5.0,
    UnaryOp.ERF: 16.0,
    UnaryOp.SIGMOID: 7.0,
    BinaryOp.POWER: 16.0,
    BinaryOp.ATAN2: 6.0,
    BinaryOp.HYPOT: 4.0,
}
"""Largest errors of OpenCL's functions; the sigmoid is ``1 / (1 + exp(-x))``. Others: ``ulps``."""

_STEEPEST = {
    UnaryOp.SIN: 1.0,
    UnaryOp.COS: 1.0,
    UnaryOp.TANH: 1.0,
    UnaryOp.ATAN: 1.0,
    UnaryOp.SIGMOID: 0.25,
    UnaryOp.ERF: 2 / sqrt(pi),
}
"""Functions between -2 and 2 with the largest size of their derivatives."""

_EXTREMES = frozenset({BinaryOp.MAXIMUM, BinaryOp.MINIMUM, BinaryOp.FMAX, BinaryOp.FMIN})


def epsilon(kind: ElementType) -> float:
    """Return the distance of 1 from the next number; 0 for integers."""
    return float(np.finfo(kind.value).eps) if kind.is_float else 0.0


def smallest(kind: ElementType) -> float:
    """Return how far underflow may move a result: devices may flush float32 numbers to zero."""
    if kind is ElementType.FLOAT32:
        return float(np.finfo(np.float32).smallest_normal)
    return float(np.finfo(kind.value).smallest_subnormal) if kind.is_float else 0.0


def ulps(op: UnaryOp | BinaryOp, kind: ElementType) -> float:
    """Return by how many units in the last place a device's and another result of an operation may differ."""
    if op in EXACT_UNARY or op in _EXTREMES or op is BinaryOp.REMAINDER:
        return 0.0
    if op is BinaryOp.DIVIDE:
        return 1.0 if kind is ElementType.FLOAT64 else 3.0
    if op is UnaryOp.SQRT:
        return 1.0 if kind is ElementType.FLOAT64 else 3.5
    return ULPS[op] + 0.5 if op in ULPS else 1.0


def rounds(expression: Expression) -> bool:
    """Return whether the outermost operation of an expression may round."""
    match expression:
        case Unary(op=op) | Binary(op=op):
            return expression.type.is_float and ulps(op, expression.type) > 0
        case Convert(type=kind, operand=operand):
            return _narrows(operand.type, kind)
        case _:
            return False


def _narrows(given: ElementType, kind: ElementType) -> bool:
    if not kind.is_float:
        return False
    if given.is_float:
        return epsilon(given) < epsilon(kind)
    return 8 * given.size > np.finfo(kind.value).nmant + 1


def approximate(
    expression: Expression,
    reads: Sequence[Approximate],
    iterators: Callable[[int], NDArray],
    parameters: Any = None,
) -> Approximate:
    """Return an expression's value and error; the arguments are those of ``arithmetic.value``."""

    def inner(part: Expression) -> Approximate:
        return approximate(part, reads, iterators, parameters)

    match expression:
        case Read(position=k):
            return reads[k]
        case Constant() | Iterator() | ParameterValue():
            return Approximate(arithmetic.value(expression, (), iterators, parameters), None)
        case Unary(op=op, operand=a):
            return _unary(op, inner(a), a.type)
        case Convert(type=kind, operand=a):
            return _converted(inner(a), a.type, kind)
        case Select(condition=condition, then=then, otherwise=otherwise):
            return _selected(inner(condition), inner(then), inner(otherwise))
        case Compare(op=op, left=a, right=b):
            return _compared(op, inner(a), inner(b))
        case Binary(op=op, left=a, right=b):
            return _binary(op, inner(a), inner(b), a.type)


def wide(values: NDArray) -> Floats:
    """Return values as float64."""
    return np.asarray(values).astype(np.float64)


def size(values: NDArray) -> Floats:
    """Return absolute values as float64."""
    return np.abs(wide(values))


def plus(*errors: Error) -> Error:
    """Return the sum of errors."""
    there = [e for e in errors if e is not None]
    return sum(there[1:], start=there[0]) if there else None


def times(error: Error, factor: Floats | float) -> Error:
    """Return an error that is carried on by a factor; no error stays none, whatever the factor."""
    return None if error is None else np.where(error == 0, 0.0, error * factor)


def magnitude(a: Approximate) -> Floats:
    """Return the largest size that a correct evaluation may have."""
    return size(a.value) if a.error is None else size(a.value) + a.error


def settled(value: NDArray, error: Error, operands: Sequence[Approximate]) -> Approximate:
    """Return a result where no error is NaN: 0 where values that are not finite are certain, else infinite.

    They are where all operands are exact, or where those that are not finite themselves decide.
    """
    if error is None or np.isfinite(error).all():
        return Approximate(value, error)
    shape = np.broadcast_shapes(np.shape(value), np.shape(error), *(np.shape(a.value) for a in operands))
    certain = np.ones(shape, np.bool_)
    decided = np.zeros(shape, np.bool_)
    for a in operands:
        own = np.zeros((), np.float64) if a.error is None else a.error
        finite = np.isfinite(wide(a.value))
        certain &= (own == 0) | (finite & (own < size(a.value)))
        decided |= ~finite
    exact = np.logical_and.reduce([np.broadcast_to(_is_zero(a.error), shape) for a in operands])
    known = exact | (certain & decided & ~np.isfinite(wide(value)))
    return Approximate(value, np.where(np.isfinite(error), error, np.where(known, 0.0, inf)))


def _is_zero(error: Error) -> npt.NDArray[np.bool_]:
    return np.ones((), np.bool_) if error is None else np.asarray(error == 0)


def _rounded(
    value: NDArray, carried: Error, op: UnaryOp | BinaryOp, kind: ElementType, operands: Sequence[Approximate]
) -> Approximate:
    """Add the rounding of an operation to what its operands bring, and what overflow makes unknown."""
    units = ulps(op, kind)
    if not kind.is_float or units == 0:
        return settled(value, carried, operands)
    largest = size(value) if carried is None else size(value) + carried
    rounding = np.maximum(units * epsilon(kind) * largest, smallest(kind))
    if op in (BinaryOp.MULTIPLY, BinaryOp.DIVIDE, BinaryOp.ADD, BinaryOp.SUBTRACT, UnaryOp.SQRT):
        rounding = _no_underflow(rounding, value, op, operands)
    error = rounding if carried is None else rounding + carried
    if carried is not None:
        overflows = (carried > 0) & (largest + rounding > float(np.finfo(kind.value).max))
        error = np.where(overflows, inf, error) if overflows.any() else error
    return settled(value, error, operands)


def _no_underflow(rounding: Floats, value: NDArray, op: Any, operands: Sequence[Approximate]) -> Floats:
    """Return the rounding without that of zeros that no underflow made."""
    zero = np.asarray(value == 0)
    if not zero.any():
        return rounding
    known = [zero & (a.value == 0) & _is_zero(a.error) for a in operands]
    if op is BinaryOp.MULTIPLY:
        proper = known[0] | known[1]
    elif op in (BinaryOp.DIVIDE, UnaryOp.SQRT):
        proper = known[0]
    else:
        proper = zero
    return np.where(proper, 0.0, rounding)


def _unary(op: UnaryOp, a: Approximate, kind: ElementType) -> Approximate:
    value = arithmetic.unary(op, a.value, kind)
    if a.error is None:
        carried = None
    elif op is UnaryOp.NOT or op in (UnaryOp.NEGATE, UnaryOp.ABS):
        return Approximate(value, a.error)
    elif op in _STEEPEST:
        carried = np.minimum(a.error * _STEEPEST[op], 2.0)
    elif op is UnaryOp.TAN:
        return _tangent(value, a, kind)
    elif kind.is_float:
        carried = _between(lambda v: arithmetic.unary(op, v, ElementType.FLOAT64), a)
    else:
        carried = np.where(a.error == 0, 0.0, inf)
    return _rounded(value, carried, op, kind, [a])


def _tangent(value: NDArray, a: Approximate, kind: ElementType) -> Approximate:
    """Carry an error through a tangent: unknown where a pole may lie inside."""
    assert a.error is not None
    room = np.abs(np.cos(wide(a.value))) - a.error
    slope = np.where(room > 0, 1 / room**2, inf)
    return _rounded(value, times(a.error, slope), UnaryOp.TAN, kind, [a])


def _between(function: Callable[[Floats], NDArray], a: Approximate) -> Floats:
    """Carry an error through a function that is monotone on it: by the values at the ends."""
    assert a.error is not None
    values = wide(a.value)
    middle = function(values)
    ends = np.abs(function(values + a.error) - middle), np.abs(function(values - a.error) - middle)
    return np.where(a.error == 0, 0.0, np.maximum(*ends))


def _converted(a: Approximate, given: ElementType, kind: ElementType) -> Approximate:
    value = arithmetic.convert(a.value, kind)
    if given.is_float and not kind.is_float:
        return _whole(value, a, kind)
    if not _narrows(given, kind):
        return Approximate(value, a.error)
    largest = magnitude(a)
    rounding = np.maximum(epsilon(kind) * largest, smallest(kind))
    if a.error is None:
        return settled(value, np.where(wide(value) == wide(a.value), 0.0, rounding), [a])
    overflows = (a.error > 0) & (largest + rounding > float(np.finfo(kind.value).max))
    return settled(value, np.where(overflows, inf, rounding + a.error), [a])


def _whole(value: NDArray, a: Approximate, kind: ElementType) -> Approximate:
    """Convert floats to integers: exact but where the next integer, or the end of the type, is in reach."""
    if a.error is None:
        return Approximate(value, None)
    limits = np.iinfo(kind.value) if kind is not ElementType.BOOL else None
    error = _between(np.trunc, a)
    if limits is not None:
        outside = (error > 0) & (np.abs(wide(a.value)) + a.error >= float(limits.max))
        error = np.where(outside, inf, error)
    return settled(value, error, [a])


def _compared(op: CompareOp, a: Approximate, b: Approximate) -> Approximate:
    """Compare: a truth value, with an error of 1 where the errors may turn the comparison around."""
    holds = arithmetic.COMPARISONS[op](a.value, b.value)
    slack = plus(a.error, b.error)
    if slack is None:
        return Approximate(holds, None)
    apart = np.abs(wide(a.value) - wide(b.value))
    return Approximate(holds, ((slack > 0) & ~(apart > slack)).astype(np.float64))


def _logical(op: BinaryOp, value: NDArray, a: Approximate, b: Approximate) -> Approximate:
    """Combine truth values; a doubtful one counts where the other does not decide alone."""
    if a.error is None and b.error is None:
        return Approximate(value, None)
    decides = op is BinaryOp.OR
    settled_by = [(x.value == decides) & _is_zero(x.error) for x in (a, b)]
    doubtful = ~(_is_zero(a.error) & _is_zero(b.error)) & ~(settled_by[0] | settled_by[1])
    return Approximate(value, doubtful.astype(np.float64))


def _selected(condition: Approximate, then: Approximate, otherwise: Approximate) -> Approximate:
    """Choose; where the condition is in doubt, the difference of the sides counts."""
    chosen = np.asarray(condition.value).astype(np.bool_)
    value = np.where(chosen, then.value, otherwise.value)
    if then.error is None and otherwise.error is None and condition.error is None:
        return Approximate(value, None)
    zero = np.zeros((), np.float64)
    one, other = (zero if e is None else e for e in (then.error, otherwise.error))
    error = np.where(chosen, one, other)
    if condition.error is not None:
        turned = np.abs(wide(then.value) - wide(otherwise.value)) + one + other
        same = (then.value == otherwise.value) & (one == 0) & (other == 0)
        error = np.where((condition.error > 0) & ~same, np.nan_to_num(turned, nan=inf, posinf=inf), error)
    return Approximate(value, error)


def _binary(op: BinaryOp, a: Approximate, b: Approximate, kind: ElementType) -> Approximate:
    value = arithmetic.binary(op, a.value, b.value, kind)
    if op in (BinaryOp.AND, BinaryOp.OR):
        return _logical(op, value, a, b)
    if a.error is None and b.error is None:
        return _rounded(value, None, op, kind, [a, b])
    carry = _CARRIED.get(op) if kind.is_float or op in _ALSO_OF_INTEGERS else None
    carried = _exact_or_unknown(value, a, b) if carry is None else carry(value, a, b)
    return _rounded(value, carried, op, kind, [a, b])


def _exact_or_unknown(value: NDArray, a: Approximate, b: Approximate) -> Floats:
    """Carry errors through a function that may jump: exact operands only have an exact result."""
    return np.where(_is_zero(a.error) & _is_zero(b.error), 0.0, inf)


def _added(value: NDArray, a: Approximate, b: Approximate) -> Error:
    return plus(a.error, b.error)


def _multiplied(value: NDArray, a: Approximate, b: Approximate) -> Error:
    return plus(times(b.error, size(a.value)), times(a.error, magnitude(b)))


def _divided(value: NDArray, a: Approximate, b: Approximate) -> Error:
    if b.error is None:
        return times(a.error, 1 / size(b.value))
    room = size(b.value) - b.error
    own = np.zeros(()) if a.error is None else a.error
    carried = own + b.error * np.abs(wide(a.value) / wide(b.value))
    exact = _is_zero(a.error) & (b.error == 0)
    return np.where(exact, 0.0, np.where(room > 0, carried / room, inf))


def _power(value: NDArray, a: Approximate, b: Approximate) -> Error:
    """Carry errors through a power: by its corners, and unknown where the base may change its sign."""
    base, exponent = wide(a.value), wide(b.value)
    one, other = (np.zeros(()) if e is None else e for e in (a.error, b.error))
    middle = np.power(base, exponent)
    corners = [np.power(base + s * one, exponent + t * other) for s in (-1, 1) for t in (-1, 1)]
    error = np.max([np.abs(corner - middle) for corner in corners], axis=0)
    crosses = (one > 0) & (np.abs(base) <= one) & ((exponent < 0) | (other > 0))
    return np.where((one == 0) & (other == 0), 0.0, np.where(crosses, inf, error))


def _extreme(value: NDArray, a: Approximate, b: Approximate) -> Error:
    one, other = (np.zeros(()) if e is None else e for e in (a.error, b.error))
    return np.maximum(one, other)


def _hypotenuse(value: NDArray, a: Approximate, b: Approximate) -> Error:
    return plus(a.error, b.error)


def _angle(value: NDArray, a: Approximate, b: Approximate) -> Error:
    """Carry errors through atan2: unknown near the origin and across the half turn."""
    y, x = wide(a.value), wide(b.value)
    one, other = (np.zeros(()) if e is None else e for e in (a.error, b.error))
    moved = np.hypot(one, other)
    turns = (moved >= np.hypot(y, x)) | ((x < other) & (np.abs(y) <= one))
    exact = (one == 0) & (other == 0)
    return np.where(exact, 0.0, np.where(turns, inf, pi / 2 * moved / np.hypot(y, x)))


_CARRIED: dict[BinaryOp, Callable[[NDArray, Approximate, Approximate], Error]] = {
    BinaryOp.ADD: _added,
    BinaryOp.SUBTRACT: _added,
    BinaryOp.MULTIPLY: _multiplied,
    BinaryOp.DIVIDE: _divided,
    BinaryOp.POWER: _power,
    BinaryOp.ATAN2: _angle,
    BinaryOp.HYPOT: _hypotenuse,
    **dict.fromkeys(_EXTREMES, _extreme),
}
_ALSO_OF_INTEGERS = frozenset({BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, *_EXTREMES})
