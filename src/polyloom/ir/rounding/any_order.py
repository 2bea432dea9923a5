"""Which results have the same bits in whatever order their sums are taken: a check may ask for them.

Terms that are multiples of 2**-g add up without rounding as long as the sum, counted in 2**-g, has no more
digits than its type. Sums of exponentials, roots or quotients round, so their order decides the bits.

Not in the papers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.random_inputs import size_of, terms_per_element
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Constant,
    Convert,
    Expression,
    Read,
    Select,
    Unary,
    UnaryOp,
    children,
)
from polyloom.ir.program import Program
from polyloom.ir.reductions import Combine
from polyloom.ir.statements import Statement

NDArray = npt.NDArray[Any]

_TO_INTEGERS = frozenset({UnaryOp.FLOOR, UnaryOp.CEIL, UnaryOp.ROUND, UnaryOp.TRUNC})
_KEEPS_DIGITS = frozenset({UnaryOp.NEGATE, UnaryOp.ABS})
_LARGER_OF_BOTH = frozenset({BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MAXIMUM, BinaryOp.MINIMUM})


@dataclass(frozen=True)
class Digits:
    """What is known of a tensor's elements.

    ``fraction``: they are multiples of ``2**-fraction``; None where no such number is known. ``ordered``:
    the order of a sum, or how a function is computed, here or in what they are made from, may decide their
    bits.
    """

    fraction: int | None = 0
    ordered: bool = False


def digits_of(
    program: Program,
    arrays: Mapping[str, NDArray],
    given: Mapping[str, Digits] | None = None,
    approximate: Collection[str] = (),
) -> dict[str, Digits]:
    """Return what is known of every tensor that a statement writes.

    ``arrays``: the values of all tensors. ``given``: what is known of inputs; where nothing is said, whether
    their values are integers.
    ``approximate``: statements whose functions are computed by other roundings than the evaluator's.
    """
    integers = {name: bool((np.trunc(arrays[name]) == arrays[name]).all()) for name in program.inputs}
    known = {name: Digits(0 if whole else None) for name, whole in integers.items()} | dict(given or {})
    sizes = {name: _largest(array) for name, array in arrays.items()}
    for statement in program.statements:
        written = _written(statement, known, sizes)
        known[statement.write.buffer] = Digits(None, True) if statement.name in approximate else written
    return {s.write.buffer: known[s.write.buffer] for s in program.statements}


def _written(statement: Statement, known: Mapping[str, Digits], sizes: Mapping[str, float]) -> Digits:
    reads = [known[access.buffer] for access in statement.reads]
    fraction = _fraction(statement.expression, reads)
    ordered = any(read.ordered for read in reads) or _order_decides(statement, fraction, sizes)
    if fraction is not None and statement.reduction is Combine.MULTIPLY:
        fraction *= terms_per_element(statement)
    return Digits(fraction, ordered)


def _order_decides(statement: Statement, fraction: int | None, sizes: Mapping[str, float]) -> bool:
    """Whether another order of the terms of an element may give other bits, as far as is known.

    Sums of integers whose results leave room to spare are taken to stay small on the way as well.
    """
    kind, terms = statement.expression.type, terms_per_element(statement)
    sums = statement.reduction in (Combine.ADD, Combine.MULTIPLY)
    if not kind.is_float or not sums or terms == 1:
        return False
    if fraction is None:
        return True
    digits = np.finfo(kind.value).nmant + 1
    if fraction == 0 and sizes[statement.write.buffer] < 2.0 ** (digits - 2):
        return False
    size = size_of(statement.expression, statement, sizes)
    if statement.reduction is Combine.ADD:
        return bool(terms * size * 2.0**fraction > 2.0**digits)
    return bool(terms * (np.log2(max(size, 1.0)) + fraction) > digits)


def _fraction(expression: Expression, reads: list[Digits]) -> int | None:
    """Return g where the values of an expression are multiples of 2**-g; rounding keeps them such."""
    if not expression.type.is_float:
        return 0
    inner = [_fraction(child, reads) for child in children(expression)]
    match expression:
        case Read(position=k):
            return reads[k].fraction
        case Constant(value=value, type=kind):
            return _of_number(float(np.asarray(value, kind.dtype)))
        case Unary(op=op) if op in _TO_INTEGERS:
            return 0
        case Unary(op=op) if op in _KEEPS_DIGITS:
            return inner[0]
        case Convert():
            return inner[0]
        case Binary(op=op) if op in _LARGER_OF_BOTH:
            return _all_of(inner)
        case Select():
            return _all_of(inner[1:])
        case Binary(op=BinaryOp.MULTIPLY):
            return None if None in inner else sum(g or 0 for g in inner)
        case Binary(op=BinaryOp.DIVIDE, right=Constant(value=value)):
            return None if inner[0] is None else _divided(inner[0], value)
        case _:
            return None


def _all_of(fractions: list[int | None]) -> int | None:
    return None if None in fractions else max(g or 0 for g in fractions)


def _of_number(value: float) -> int | None:
    return value.as_integer_ratio()[1].bit_length() - 1 if math.isfinite(value) else None


def _divided(fraction: int, divisor: float | int) -> int | None:
    """Return the fraction of a quotient by a power of two from 1 on; None for other divisors."""
    mantissa, exponent = math.frexp(divisor)
    return fraction + exponent - 1 if mantissa == 0.5 and exponent > 0 else None


def _largest(array: NDArray) -> float:
    """Return the size of the largest element; infinite where one is no number."""
    return float(np.nan_to_num(np.abs(array.astype(np.float64)), nan=np.inf).max(initial=0.0))
