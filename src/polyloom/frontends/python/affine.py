"""Integers that loops and subscripts are made of: quasi-affine in iterators and sizes.

``//`` and ``%`` are Python's: they round downwards. Names are isl's parameters ``v_NAME``, so that no name of
a user is a word of isl.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from polyloom.ir.expressions import Binary, Constant, Expression, ParameterValue
from polyloom.ir.scalar_functions.table import BinaryOp
from polyloom.ir.types import ElementType

INT = ElementType.INT64
PREFIX = "v_"
_NAME = re.compile(rf"\b{PREFIX}\w+")


@dataclass(frozen=True)
class Affine:
    """``terms``: names with their factors; ``constant``. ``text``: the same in isl's notation.

    ``value``: the same as an expression. ``is_plain``: without divisions, so that ``terms`` say all.
    """

    text: str
    value: Expression
    terms: Mapping[str, int]
    constant: int
    is_plain: bool = True

    @property
    def names(self) -> frozenset[str]:
        """The iterators and sizes that it speaks of."""
        return frozenset(word.removeprefix(PREFIX) for word in _NAME.findall(self.text))

    @property
    def number(self) -> int | None:
        """The number that it is, if it is one."""
        return self.constant if self.is_plain and not self.terms else None


def number(value: int) -> Affine:
    """Return a number."""
    return Affine(str(value), Constant(value, INT), {}, value)


def name(text: str) -> Affine:
    """Return an iterator or a size."""
    return Affine(PREFIX + text, ParameterValue(text, INT), {text: 1}, 0)


def combined(operator: ast.operator, a: Affine, b: Affine) -> Affine | None:
    """Return ``a operator b``; None where that is not affine."""
    match operator:
        case ast.Add():
            return _sum(a, b, 1)
        case ast.Sub():
            return _sum(a, b, -1)
        case ast.Mult():
            factor, other = (a, b) if a.number is not None else (b, a)
            return None if factor.number is None else _product(factor.number, other)
        case ast.Pow() if a.number is not None and b.number is not None and 0 <= b.number < 64:
            power = int(a.number**b.number)
            return number(power) if abs(power) < 2**63 else None
        case ast.FloorDiv() | ast.Mod() if b.number is not None and b.number > 0:
            return _divided(operator, a, b.number)
        case _:
            return None


def extreme(choice: Callable[..., int], parts: Sequence[Affine]) -> Affine:
    """Return ``min`` or ``max`` of integers."""
    known = [p.number for p in parts if p.number is not None]
    if len(known) == len(parts):
        return number(choice(known))
    op = BinaryOp.MINIMUM if choice is min else BinaryOp.MAXIMUM
    value = reduce(lambda x, y: Binary(op, x, y), (p.value for p in parts))
    text = reduce(lambda x, y: f"{choice.__name__}({x}, {y})", (p.text for p in parts))
    return Affine(text, value, {}, 0, is_plain=False)


def negated(a: Affine) -> Affine:
    """Return ``-a``."""
    return _product(-1, a)


def plus(a: Affine, b: Affine) -> Affine:
    """Return ``a + b``."""
    return _sum(a, b, 1)


def minus(a: Affine, b: Affine) -> Affine:
    """Return ``a - b``."""
    return _sum(a, b, -1)


def times(factor: int, a: Affine) -> Affine:
    """Return a multiple."""
    return a if factor == 1 else _product(factor, a)


def is_taken_off(a: Affine) -> bool:
    """Return whether an integer is written as a negative one: ``-2``, ``-k``, ``-i - 1``.

    >>> is_taken_off(negated(name("k"))), is_taken_off(plus(name("i"), number(-1)))
    (True, False)
    """
    factors = [*a.terms.values(), a.constant]
    return a.is_plain and any(factors) and all(factor <= 0 for factor in factors)


def parts_of(a: Affine, size: int) -> Affine:
    """Return into how many parts of a size ``a`` falls, the last one perhaps smaller."""
    return a if size == 1 else _divided(ast.FloorDiv(), plus(a, number(size - 1)), size)


def _sum(a: Affine, b: Affine, sign: int) -> Affine:
    terms = dict(a.terms)
    for key, factor in b.terms.items():
        terms[key] = terms.get(key, 0) + sign * factor
    value = a.value + b.value if sign > 0 else a.value - b.value
    constant, plain = a.constant + sign * b.constant, a.is_plain and b.is_plain
    terms = {key: factor for key, factor in terms.items() if factor}
    if plain and not terms:
        return number(constant)
    return Affine(f"({a.text} {'+' if sign > 0 else '-'} {b.text})", value, terms, constant, plain)


def _product(factor: int, a: Affine) -> Affine:
    if a.number is not None:
        return number(factor * a.number)
    terms = {key: factor * f for key, f in a.terms.items()}
    value = Constant(factor, INT) * a.value
    return Affine(f"({factor} * {a.text})", value, terms, factor * a.constant, a.is_plain)


def _divided(operator: ast.operator, a: Affine, by: int) -> Affine:
    if a.number is not None:
        return number(a.number // by if isinstance(operator, ast.FloorDiv) else a.number % by)
    divisor = Constant(by, INT)
    remainder = Binary(BinaryOp.REMAINDER, a.value, divisor)
    positive = Binary(BinaryOp.REMAINDER, remainder + divisor, divisor)
    if isinstance(operator, ast.FloorDiv):
        quotient = (a.value - positive) / divisor
        return Affine(f"floor({a.text}/{by})", quotient, {}, 0, is_plain=False)
    return Affine(f"({a.text} mod {by})", positive, {}, 0, is_plain=False)
