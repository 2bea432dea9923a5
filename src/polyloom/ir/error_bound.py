"""How far two correct evaluations of a program may differ, element by element.

For a statement whose terms are exact inputs of one operation each (``y += W * x``), the bound of an
element is ``n * eps * sum(|terms|)``: n the number of its terms, eps the distance of 1 from the next
number of its type. Otherwise the error that reaches a term is added: the errors of the tensors that it
reads, and the rounding of each operation inside it but the last (which n counts), carried through the
operations that follow. Integers have no rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir import arithmetic
from polyloom.ir.evaluate import evaluate
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
from polyloom.ir.inputs import checked_inputs
from polyloom.ir.program import Combine, Program, Statement
from polyloom.ir.sweep import Step, guard_mask, iterator_values, read, steps, store
from polyloom.ir.types import ElementType

Floats = npt.NDArray[np.float64]
NDArray = npt.NDArray[Any]

_WITHOUT_ROUNDING = EXACT_UNARY | frozenset(
    {
        BinaryOp.MAXIMUM,
        BinaryOp.MINIMUM,
        BinaryOp.FMAX,
        BinaryOp.FMIN,
        BinaryOp.REMAINDER,
    }
)
_WAVES = frozenset({UnaryOp.SIN, UnaryOp.COS})


@dataclass(frozen=True)
class Approximate:
    """Values, and how far from them a correct evaluation may be."""

    value: Floats
    error: Floats


def error_bound(
    program: Program, inputs: Mapping[str, NDArray], errors: Mapping[str, Floats] | None = None
) -> dict[str, Floats]:
    """Return a bound on the error of each element of every tensor that a statement writes.

    ``errors``: how far inputs may be from the right values (a state that an earlier invocation computed);
    those that it does not name are exact. Each array has the shape of its input.

    Errors: those of ``evaluate``. Not in the papers.
    """
    given = errors or {}
    known = {
        name: Approximate(array.astype(np.float64), given[name]) if name in given else _exact(array)
        for name, array in checked_inputs(program, inputs).items()
    }
    bounds: dict[str, Floats] = {}
    with np.errstate(all="ignore"):
        for name, array in evaluate(program, inputs).items():
            statement = program.definition(name)
            assert statement is not None, name
            bounds[name] = _bound(statement, array, known)
            known[name] = Approximate(array.astype(np.float64), bounds[name])
    return bounds


def _exact(array: NDArray) -> Approximate:
    values = array.astype(np.float64)
    return Approximate(values, np.zeros_like(values))


def epsilon(kind: ElementType) -> float:
    """Return the distance of 1 from the next number; 0 for integers."""
    return float(np.finfo(kind.value).eps) if kind.is_float else 0.0


def _bound(statement: Statement, result: NDArray, known: Mapping[str, Approximate]) -> Floats:
    sums = _Sums(statement, result.shape)
    for step in steps(statement):
        reads = [_read(known[a.tensor], statement, k, step) for k, a in enumerate(statement.reads)]
        term = _Rules(reads, step).carried(statement.expression)
        sums.add(step, term)
    rounding = np.maximum(sums.count, 1) * epsilon(statement.expression.type)
    if statement.reduction is Combine.MULTIPLY:
        return np.asarray(rounding * sums.inflated + (sums.inflated - sums.size))
    return np.asarray(rounding * sums.size + sums.error)


def _read(known: Approximate, statement: Statement, position: int, step: Step) -> Approximate:
    access = statement.reads[position]
    return Approximate(read(known.value, access, step.box), read(known.error, access, step.box))


class _Sums:
    """Per output element: number of terms, sum of their sizes (or product), what reaches them of errors."""

    def __init__(self, statement: Statement, shape: tuple[int, ...]) -> None:
        self.statement = statement
        start = 1.0 if statement.reduction is Combine.MULTIPLY else 0.0
        self.count: Floats = np.zeros(shape)
        self.size: Floats = np.full(shape, start)
        self.inflated: Floats = np.full(shape, start)
        self.error: Floats = np.zeros(shape)

    def add(self, step: Step, term: Approximate) -> None:
        """Add the terms of a box."""
        mask = guard_mask(self.statement, step.box)
        ones = np.ones(tuple(map(len, step.box)))
        size, error = np.abs(term.value), np.nan_to_num(term.error, nan=np.inf, posinf=np.inf)
        self._combine(self.count, step, ones, mask, np.add, 0.0)
        if self.statement.reduction is Combine.MULTIPLY:
            self._combine(self.size, step, size * ones, mask, np.multiply, 1.0)
            self._combine(self.inflated, step, (size + error) * ones, mask, np.multiply, 1.0)
        else:
            extreme = self.statement.reduction in (Combine.MAXIMUM, Combine.MINIMUM)
            self._combine(self.size, step, size * ones, mask, np.add, 0.0)
            self._combine(self.error, step, error * ones, mask, np.maximum if extreme else np.add, 0.0)

    def _combine(
        self, total: Floats, step: Step, terms: Floats, mask: NDArray | None, operator: np.ufunc, start: float
    ) -> None:
        proper = terms if mask is None else np.where(mask, terms, start)
        if step.run is not None:
            proper = operator.reduce(proper, axis=step.run, keepdims=True)
        before = read(total, self.statement.write, step.written)
        store(total, self.statement.write, step.written, operator(before, proper), _inside(mask, step.run))


def _inside(mask: NDArray | None, run: int | None) -> NDArray | None:
    if mask is None or run is None:
        return mask
    return np.logical_or.reduce(mask, axis=run, keepdims=True)


@dataclass(frozen=True)
class _Rules:
    """Expressions with errors; ``carried`` leaves out the rounding of the outermost operation."""

    reads: list[Approximate]
    step: Step

    def carried(self, expression: Expression) -> Approximate:
        match expression:
            case Read(position=k):
                return self.reads[k]
            case Constant(value=x, type=kind):
                return _exact(arithmetic.constant(x, kind))
            case Iterator(dimension=k):
                return _exact(iterator_values(k, self.step.box))
            case ParameterValue():
                raise TypeError("a program of tensors has no parameters")
            case Unary(op=op, operand=a) if op in _WAVES:
                return _wave(op, self.rounded(a))
            case Unary(op=UnaryOp.TAN, operand=a):
                return _divided(_wave(UnaryOp.SIN, self.rounded(a)), _wave(UnaryOp.COS, self.rounded(a)))
            case Unary(op=op, operand=a):
                return _through(_function(op, a.type), self.rounded(a))
            case Convert(type=kind, operand=a):
                return _through(_converting(kind), self.rounded(a))
            case Select(condition=condition, then=then, otherwise=otherwise):
                return _selected(self.rounded(condition), self.rounded(then), self.rounded(otherwise))
            case Compare(op=op, left=a, right=b):
                return _compared(op, self.rounded(a), self.rounded(b))
            case Binary(op=BinaryOp.AND | BinaryOp.OR as op, left=a, right=b):
                return _logical(op, self.rounded(a), self.rounded(b))
            case Binary(op=op, left=a, right=b) if op in _BINARY:
                return _BINARY[op](self.rounded(a), self.rounded(b))
            case Binary(op=op, left=a, right=b):
                return _of_both(op, a.type, self.rounded(a), self.rounded(b))

    def rounded(self, expression: Expression) -> Approximate:
        found = self.carried(expression)
        if not _rounds(expression):
            return found
        return Approximate(found.value, found.error + epsilon(expression.type) * np.abs(found.value))


def _rounds(expression: Expression) -> bool:
    match expression:
        case Unary(op=op) | Binary(op=op):
            return op not in _WITHOUT_ROUNDING
        case _:
            return isinstance(expression, Convert)


def _through(function: Callable[[Floats], NDArray], a: Approximate) -> Approximate:
    """Carry an error through a function that is monotone on it: by the values at the ends."""
    middle = function(a.value)
    ends = np.abs(function(a.value + a.error) - middle), np.abs(function(a.value - a.error) - middle)
    return Approximate(middle, np.where(a.error == 0, 0.0, np.maximum(*ends)))


def _function(op: UnaryOp, kind: ElementType) -> Callable[[Floats], NDArray]:
    if op is UnaryOp.NOT:
        return lambda values: np.asarray(values == 0, dtype=np.float64)
    if op is UnaryOp.COMPLEMENT:
        return lambda values: arithmetic.unary(op, values.astype(kind.dtype), kind).astype(np.float64)
    return lambda values: arithmetic.unary(op, values, ElementType.FLOAT64)


def _wave(op: UnaryOp, a: Approximate) -> Approximate:
    """Carry an error through sine or cosine, which never moves further than its argument."""
    return Approximate(arithmetic.unary(op, a.value, ElementType.FLOAT64), np.minimum(a.error, 2.0))


def _converting(kind: ElementType) -> Callable[[Floats], NDArray]:
    return (lambda v: v) if kind.is_float else np.trunc


def _compared(op: CompareOp, a: Approximate, b: Approximate) -> Approximate:
    """Compare: 1 or 0, with an error of 1 where the errors may turn the comparison around."""
    slack = a.error + b.error
    doubtful = (slack > 0) & (np.abs(a.value - b.value) <= slack)
    holds = arithmetic.COMPARISONS[op](a.value, b.value)
    return Approximate(holds.astype(np.float64), doubtful.astype(np.float64))


def _logical(op: BinaryOp, a: Approximate, b: Approximate) -> Approximate:
    """Combine truth values; a doubtful one counts where the other does not decide alone."""
    extreme = np.minimum if op is BinaryOp.AND else np.maximum
    middle = extreme(a.value, b.value)
    corners = [extreme(x, y) for x in _both_ways(a) for y in _both_ways(b)]
    error = np.max([np.abs(corner - middle) for corner in corners], axis=0)
    return Approximate(middle, error)


def _both_ways(a: Approximate) -> tuple[Floats, Floats]:
    return a.value, np.where(a.error > 0, 1 - a.value, a.value)


def _selected(condition: Approximate, then: Approximate, otherwise: Approximate) -> Approximate:
    """Choose; where the condition is in doubt, the difference of the sides counts."""
    chosen = condition.value != 0
    error = np.where(chosen, then.error, otherwise.error)
    turned = np.abs(then.value - otherwise.value) + then.error + otherwise.error
    value = np.where(chosen, then.value, otherwise.value)
    return Approximate(value, np.where(condition.error > 0, turned, error))


def _of_both(op: BinaryOp, kind: ElementType, a: Approximate, b: Approximate) -> Approximate:
    """Carry errors through a function that may jump: exact operands only have an exact result."""
    left, right = a.value.astype(kind.dtype), b.value.astype(kind.dtype)
    result = arithmetic.binary(op, left, right, kind).astype(np.float64)
    return Approximate(result, np.where((a.error == 0) & (b.error == 0), 0.0, np.inf))


def _hypotenuse(a: Approximate, b: Approximate) -> Approximate:
    return Approximate(np.hypot(a.value, b.value), np.hypot(a.error, b.error))


def _added(a: Approximate, b: Approximate) -> Approximate:
    return Approximate(a.value + b.value, a.error + b.error)


def _subtracted(a: Approximate, b: Approximate) -> Approximate:
    return Approximate(a.value - b.value, a.error + b.error)


def _multiplied(a: Approximate, b: Approximate) -> Approximate:
    error = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
    return Approximate(a.value * b.value, error)


def _divided(a: Approximate, b: Approximate) -> Approximate:
    quotient = a.value / b.value
    room = np.abs(b.value) - b.error
    error = np.where(room > 0, (a.error + np.abs(quotient) * b.error) / room, np.inf)
    return Approximate(quotient, np.where((a.error == 0) & (b.error == 0), 0.0, error))


def _power(a: Approximate, b: Approximate) -> Approximate:
    middle = np.power(a.value, b.value)
    corners = [np.power(a.value + s * a.error, b.value + t * b.error) for s in (-1, 1) for t in (-1, 1)]
    error = np.max([np.abs(corner - middle) for corner in corners], axis=0)
    return Approximate(middle, np.where((a.error == 0) & (b.error == 0), 0.0, error))


def _extreme(function: np.ufunc) -> Callable[[Approximate, Approximate], Approximate]:
    return lambda a, b: Approximate(function(a.value, b.value), np.maximum(a.error, b.error))


_BINARY: dict[BinaryOp, Callable[[Approximate, Approximate], Approximate]] = {
    BinaryOp.ADD: _added,
    BinaryOp.SUBTRACT: _subtracted,
    BinaryOp.MULTIPLY: _multiplied,
    BinaryOp.DIVIDE: _divided,
    BinaryOp.POWER: _power,
    BinaryOp.MAXIMUM: _extreme(np.maximum),
    BinaryOp.MINIMUM: _extreme(np.minimum),
    BinaryOp.FMAX: _extreme(np.fmax),
    BinaryOp.FMIN: _extreme(np.fmin),
    BinaryOp.HYPOT: _hypotenuse,
}
