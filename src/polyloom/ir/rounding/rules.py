"""Scalar operations on values that are known up to an error.

``error`` bounds how far two correct evaluations may be apart, one of them on a device whose functions are as
exact as OpenCL asks for: what reaches an operation through its operands, and what rounding adds. None: every
correct evaluation gives these bits. Infinite: nothing is known.

A value that overflows, or is no number, for all operands within their errors has the error 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np

from polyloom.ir.evaluation import arithmetic
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    Local,
    ParameterValue,
    Procedure,
    Read,
    Select,
    Unary,
)
from polyloom.ir.procedures.variables import assignments
from polyloom.ir.scalar_functions import error_rules
from polyloom.ir.scalar_functions.approximate import (
    Approximate,
    Error,
    Floats,
    NDArray,
    is_zero,
    magnitude,
    numeric,
    plus,
    size,
    wide,
)
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.scalar_functions.rounding import Rounding, TrueZeros
from polyloom.ir.types import ElementType

_NOTHING: Mapping[Local, Approximate] = MappingProxyType({})


def epsilon(kind: ElementType) -> float:
    """Return the distance of 1 from the next number; 0 for integers."""
    return float(np.finfo(kind.value).eps) if kind.is_float else 0.0


def smallest(kind: ElementType) -> float:
    """Return how far underflow may move a result: devices may flush float32 numbers to zero."""
    if kind is ElementType.FLOAT32:
        return float(np.finfo(np.float32).smallest_normal)
    return float(np.finfo(kind.value).smallest_subnormal) if kind.is_float else 0.0


def rounds(expression: Expression) -> bool:
    """Return whether the outermost operation of an expression may round."""
    match expression:
        case Unary(op=op) | Binary(op=op):
            return expression.type.is_float and not op.rounding.exact
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
    known: Mapping[Local, Approximate] = _NOTHING,
) -> Approximate:
    """Return an expression's value and error; the arguments are those of ``arithmetic.value``."""

    def inner(part: Expression) -> Approximate:
        return approximate(part, reads, iterators, parameters, known)

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
        case Local(type=kind):
            return known.get(expression) or Approximate(arithmetic.constant(0, kind), None)
        case Procedure(body=body, result=result):
            own = dict(known)
            for step in assignments(body):
                own[step.local] = approximate(step.value, reads, iterators, parameters, own)
            return own[result]


def with_known_error(value: NDArray, error: Error, operands: Sequence[Approximate]) -> Approximate:
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
    exact = np.logical_and.reduce([np.broadcast_to(is_zero(a.error), shape) for a in operands])
    known = exact | (certain & decided & ~np.isfinite(wide(value)))
    return Approximate(value, np.where(np.isfinite(error), error, np.where(known, 0.0, inf)))


def _rounded(
    value: NDArray, carried: Error, how: Rounding, kind: ElementType, operands: Sequence[Approximate]
) -> Approximate:
    """Add the rounding of an operation to what its operands bring, and what overflow makes unknown."""
    if not kind.is_float or how.exact:
        return with_known_error(value, carried, operands)
    largest = size(value) if carried is None else size(value) + carried
    rounding = np.maximum(how.ulps(kind) * epsilon(kind) * largest, smallest(kind))
    if how.true_zeros is not None:
        rounding = _no_underflow(rounding, value, how.true_zeros, operands)
    error = rounding if carried is None else rounding + carried
    if carried is not None:
        overflows = (carried > 0) & (largest + rounding > float(np.finfo(kind.value).max))
        error = np.where(overflows, inf, error) if overflows.any() else error
    return with_known_error(value, error, operands)


def _no_underflow(
    rounding: Floats, value: NDArray, true_zeros: TrueZeros, operands: Sequence[Approximate]
) -> Floats:
    """Return the rounding without that of zeros that no underflow made."""
    zero = np.asarray(value == 0)
    if not zero.any():
        return rounding
    known = [zero & (a.value == 0) & is_zero(a.error) for a in operands]
    return np.where(true_zeros(zero, known), 0.0, rounding)


def _unary(op: UnaryFunction, a: Approximate, kind: ElementType) -> Approximate:
    form = op.form(kind)
    carried = None if a.error is None else form.error(form.numpy, a, a.error)
    return _rounded(form.numpy(a.value), carried, op.rounding, kind, [a])


def _converted(a: Approximate, given: ElementType, kind: ElementType) -> Approximate:
    value = arithmetic.convert(a.value, kind)
    if given.is_float and not kind.is_float:
        return _whole(value, a, kind)
    if not _narrows(given, kind):
        return Approximate(value, a.error)
    largest = magnitude(a)
    rounding = np.maximum(epsilon(kind) * largest, smallest(kind))
    if a.error is None:
        return with_known_error(value, np.where(wide(value) == wide(a.value), 0.0, rounding), [a])
    overflows = (a.error > 0) & (largest + rounding > float(np.finfo(kind.value).max))
    return with_known_error(value, np.where(overflows, inf, rounding + a.error), [a])


def _whole(value: NDArray, a: Approximate, kind: ElementType) -> Approximate:
    """Convert floats to integers: exact but where the next integer, or the end of the type, is in reach."""
    if a.error is None:
        return Approximate(value, None)
    limits = np.iinfo(kind.value) if kind is not ElementType.BOOL else None
    error = numeric(error_rules.monotone(np.trunc, a, a.error))
    if limits is not None:
        outside = (error > 0) & (np.abs(wide(a.value)) + a.error >= float(limits.max))
        error = np.where(outside, inf, error)
    return with_known_error(value, error, [a])


def _compared(op: CompareOp, a: Approximate, b: Approximate) -> Approximate:
    """Compare: a truth value, with an error of 1 where the errors may turn the comparison around."""
    holds = arithmetic.COMPARISONS[op](a.value, b.value)
    slack = plus(a.error, b.error)
    if slack is None:
        return Approximate(holds, None)
    apart = np.abs(wide(a.value) - wide(b.value))
    return Approximate(holds, ((slack > 0) & ~(apart > slack)).astype(np.float64))


def _selected(condition: Approximate, then: Approximate, otherwise: Approximate) -> Approximate:
    """Choose; where the condition is in doubt, the difference of the sides counts."""
    chosen = np.asarray(condition.value).astype(np.bool_)
    value = np.where(chosen, then.value, otherwise.value)
    if then.error is None and otherwise.error is None and condition.error is None:
        return Approximate(value, None)
    one, other = numeric(then.error), numeric(otherwise.error)
    error = np.where(chosen, one, other)
    if condition.error is not None:
        difference = np.abs(wide(then.value) - wide(otherwise.value)) + one + other
        same = (then.value == otherwise.value) & (one == 0) & (other == 0)
        error = np.where((condition.error > 0) & ~same, np.nan_to_num(difference, nan=inf, posinf=inf), error)
    return Approximate(value, error)


def _binary(op: BinaryFunction, a: Approximate, b: Approximate, kind: ElementType) -> Approximate:
    form = op.form(kind)
    value = form.numpy(a.value, b.value)
    carried = None if a.error is None and b.error is None else form.error(value, a, b)
    if op is BinaryOp.ADD and (_is_zero_everywhere(a) or _is_zero_everywhere(b)):
        return with_known_error(value, plus(carried, _flushed(value, carried, kind)), [a, b])
    return _rounded(value, carried, op.rounding, kind, [a, b])


def _is_zero_everywhere(a: Approximate) -> bool:
    """Return whether an operand is exactly 0, and so rounds nothing; the first element tells it of most."""
    values = np.asarray(a.value)
    return a.error is None and values.size > 0 and not values.flat[0] and not values.any()


def _flushed(value: NDArray, carried: Error, kind: ElementType) -> Error:
    """Return the error of results that are as they came, unless a device flushes them to zero."""
    if kind is not ElementType.FLOAT32:
        return None
    small = size(value) - numeric(carried) < smallest(kind)
    kept = (value == 0) & is_zero(carried)
    return np.where(small & ~kept, smallest(kind), 0.0)
