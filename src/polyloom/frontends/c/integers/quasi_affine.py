"""Parts of subscripts that are no polynomials, and are quasi-affine: ``d[y * (w / 2) + x]``, clamped indices.

    s[(y + k < 0 ? 0 : y + k) * w + x / 2]    is s[[y + k < 0 ? 0 : y + k] * w + [x / 2]]

Each is one factor, as a name is, with what it is as a function; so ``w / 2`` may be how long rows are. It is
right where its reference is made. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import islpy as isl

from polyloom.frontends.c.integers.affine import floor_divided, masked, truncated
from polyloom.frontends.c.integers.extents import written
from polyloom.frontends.c.integers.from_isl import expression_of
from polyloom.frontends.c.integers.polynomials import Part, Polynomial, plain_polynomial
from polyloom.frontends.c.scope.conversions import wrapped
from polyloom.frontends.c.scope.sets import LARGEST, constant_affine, everywhere, parameter_affine
from polyloom.frontends.c.scope.types import is_unsigned, value_range
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    ParameterValue,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.text.integers import integer_text
from polyloom.ir.types import ElementType
from polyloom.polyhedra.functions import isl_integer

_BITS = 63
"""Bits of the widest integer without its sign: shifts are by less."""

_WIDE = ElementType.INT64
_DIM = isl.dim_type


@dataclass(eq=False)
class QuasiAffine:
    """The parts of one array's subscripts; ``parts`` has those that were found, by their names."""

    iterators: frozenset[str]
    parts: dict[str, Part] = field(default_factory=dict)

    def polynomial(self, part: Expression, here: isl.Set) -> Polynomial | None:
        """Return a part as a polynomial of a name, or of more where it is a sum ``here``; None for others.

        Where nothing is ``here``, nothing is known of it.
        """
        function = _value(part, here)
        if function is None or here.is_empty():
            return None
        simple = function.gist(here).coalesce()
        plain = plain_polynomial(simple, self.iterators)
        if plain is not None:
            return plain
        for name, known in self.parts.items():
            if here.is_subset(known.function.eq_set(simple)):
                return known.alone(name)
        name = f"({integer_text(written(simple))})"
        self.parts[name] = self._made(simple)
        return self.parts[name].alone(name)

    def _made(self, function: isl.PwAff) -> Part:
        names = (function.get_dim_name(_DIM.param, k) for k in range(function.dim(_DIM.param)))
        moves = any(
            name in self.iterators and function.involves_dims(_DIM.param, k, 1)
            for k, name in enumerate(names)
        )
        return Part(function, expression_of(function, lambda name: _WIDE, _WIDE), moves)


def _value(part: Expression, here: isl.Set) -> isl.PwAff | None:
    """Return an integer expression as a function that is right ``here``; None where it is none."""
    if part.type.is_float:
        return None
    found = _function(part, here)
    return found if found is not None and _fits(found, part.type, here) else None


def _fits(function: isl.PwAff, element: ElementType, here: isl.Set) -> bool:
    """Return whether a type holds a value; of wide signed types that is taken for granted."""
    if element.size >= ElementType.INT32.size and not is_unsigned(element):
        return True
    low, high = value_range(element)
    within = function.ge_set(constant_affine(low))
    if element.size < _WIDE.size:
        within = within.intersect(function.le_set(constant_affine(high)))
    return bool(here.is_subset(within))


def _function(part: Expression, here: isl.Set) -> isl.PwAff | None:
    match part:
        case Constant():
            number = _number(part)
            return None if number is None else constant_affine(number)
        case ParameterValue(name=name):
            return parameter_affine(name)
        case Convert(operand=operand) if operand.type is not ElementType.BOOL:
            return _value(operand, here)
        case Unary(op=UnaryOp.NEGATE, operand=operand):
            inner = _value(operand, here)
            return None if inner is None else inner.neg()
        case Binary(op=op, left=left, right=right) if op in _BY_NUMBER and (n := _number(right)) is not None:
            inner = _value(left, here)
            return None if inner is None else _BY_NUMBER[op](inner, n, part.type)
        case Binary(op=BinaryOp.MULTIPLY, left=Constant(value=int(number)), right=right):
            inner = _value(right, here)
            return None if inner is None else inner.scale_val(isl_integer(number))
        case Binary(op=op, left=left, right=right) if op in _OF_TWO:
            first, second = _value(left, here), _value(right, here)
            return None if first is None or second is None else _OF_TWO[op](first, second)
        case Select(condition=condition, then=then, otherwise=otherwise):
            where = _where(condition, here)
            if where is None:
                return None
            first, second = _value(then, here.intersect(where)), _value(otherwise, here.subtract(where))
            return None if first is None or second is None else where.indicator_function().cond(first, second)
        case _:
            return None


def _number(part: Expression) -> int | None:
    """Return the number that an expression is; None where it is none."""
    match part:
        case Constant(value=number):
            return int(number) if abs(number) <= LARGEST else None
        case Convert(operand=operand) if (inner := _number(operand)) is not None:
            return wrapped(inner, part.type)
        case Unary(op=UnaryOp.COMPLEMENT, operand=operand) if (inner := _number(operand)) is not None:
            return wrapped(~inner, part.type)
        case _:
            return None


def _where(condition: Expression, here: isl.Set) -> isl.Set | None:
    """Return where a condition holds; None where it is no affine one."""
    match condition:
        case Compare(op=op, left=left, right=right):
            first, second = _value(left, here), _value(right, here)
            return None if first is None or second is None else _COMPARED[op](first, second)
        case Binary(op=BinaryOp.AND | BinaryOp.OR as op, left=left, right=right):
            a, b = _where(left, here), _where(right, here)
            if a is None or b is None:
                return None
            return a.intersect(b) if op is BinaryOp.AND else a.union(b)
        case Unary(op=UnaryOp.NOT, operand=operand):
            inner = _where(operand, here)
            return None if inner is None else everywhere().subtract(inner)
        case _:
            return None


def _divided(op: str) -> Callable[[isl.PwAff, int, ElementType], isl.PwAff | None]:
    return lambda value, number, _: truncated(op, value, number) if number else None


def _shifted(
    by: Callable[[isl.PwAff, int], isl.PwAff],
) -> Callable[[isl.PwAff, int, ElementType], isl.PwAff | None]:
    """Return a shift by a number; other counts than those of bits mean nothing in C."""
    return lambda value, number, _: by(value, 1 << number) if 0 <= number < _BITS else None


_BY_NUMBER: dict[object, Callable[[isl.PwAff, int, ElementType], isl.PwAff | None]] = {
    BinaryOp.MULTIPLY: lambda value, number, _: value.scale_val(isl_integer(number)),
    BinaryOp.DIVIDE: _divided("/"),
    BinaryOp.REMAINDER: _divided("%"),
    BinaryOp.SHIFT_LEFT: _shifted(lambda value, by: value.scale_val(isl_integer(by))),
    BinaryOp.SHIFT_RIGHT: _shifted(floor_divided),
    BinaryOp.BIT_AND: masked,
}

_OF_TWO: dict[object, Callable[[isl.PwAff, isl.PwAff], isl.PwAff]] = {
    BinaryOp.ADD: lambda a, b: a.add(b),
    BinaryOp.SUBTRACT: lambda a, b: a.sub(b),
    BinaryOp.MINIMUM: lambda a, b: a.min(b),
    BinaryOp.MAXIMUM: lambda a, b: a.max(b),
}

_COMPARED: dict[CompareOp, Callable[[isl.PwAff, isl.PwAff], isl.Set]] = {
    CompareOp.LT: lambda a, b: a.lt_set(b),
    CompareOp.LE: lambda a, b: a.le_set(b),
    CompareOp.GT: lambda a, b: a.gt_set(b),
    CompareOp.GE: lambda a, b: a.ge_set(b),
    CompareOp.EQ: lambda a, b: a.eq_set(b),
    CompareOp.NE: lambda a, b: a.ne_set(b),
}
