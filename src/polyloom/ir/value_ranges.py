"""Between which values a scalar function of integers lies, whatever its arrays hold.

``a[i] + 2 * b[i]`` of bytes that C computes as ``int``: from 0 to 765. What may wrap around lies anywhere in
its type. Source: interval arithmetic (Moore 1966); of bit operations by the bits of their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polyloom.ir.conditions import Range
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import IntExpression, Number

SIGNED = (ElementType.INT8, ElementType.INT16, ElementType.INT32, ElementType.INT64)
UNSIGNED = (ElementType.UINT8, ElementType.UINT16, ElementType.UINT32, ElementType.UINT64)


def is_integer(kind: ElementType) -> bool:
    """Whether values of a type are integers; truth values are none."""
    return kind in SIGNED or kind in UNSIGNED


def range_of_type(kind: ElementType) -> Range:
    """Return the least and the greatest integer of a type."""
    return int(kind.lowest), int(kind.highest)


def fits(values: Range, kind: ElementType) -> bool:
    """Whether a type has all these integers."""
    low, high = range_of_type(kind)
    return low <= values[0] and values[1] <= high


def wrapped(value: int, kind: ElementType) -> int:
    """Return the integer of a type that is congruent to one modulo two to the power of its bits."""
    low, high = range_of_type(kind)
    return (value - low) % (high - low + 1) + low


class ValueRanges:
    """Ranges of integer expressions over a domain with these ``extents``; each is found once."""

    def __init__(self, extents: Sequence[IntExpression]) -> None:
        self.extents = extents
        self._known: dict[int, tuple[Expression, Range]] = {}

    def of(self, value: Expression) -> Range:
        """Return the least and the greatest value of an expression of integers."""
        if id(value) not in self._known:
            found, whole = self._range(value), range_of_type(value.type)
            self._known[id(value)] = value, found if fits(found, value.type) else whole
        return self._known[id(value)][1]

    def is_shift_within(self, count: Expression, kind: ElementType) -> bool:
        """Whether a shift of a type by ``count`` always leaves a bit; what others give is not one rule."""
        low, high = self.of(count)
        return low >= 0 and high < 8 * kind.size

    def _range(self, e: Expression) -> Range:
        match e:
            case Constant(value=number, type=kind):
                value = wrapped(int(number), kind)
                return value, value
            case Iterator(dimension=k) if isinstance(extent := self.extents[k], Number):
                return 0, max(0, extent.value - 1)
            case Unary(op=op, operand=a) if op in _OF_ONE:
                return _OF_ONE[op](self.of(a))
            case Binary(op=op, left=a, right=b) if op in _SHIFTS and self.is_shift_within(b, e.type):
                return _SHIFTS[op](self.of(a), self.of(b))
            case Binary(op=op, left=a, right=b) if op in _OF_TWO:
                return _OF_TWO[op](self.of(a), self.of(b))
            case Select(then=a, otherwise=b):
                (low, high), (least, most) = self.of(a), self.of(b)
                return min(low, least), max(high, most)
            case Convert(operand=a) if a.type is ElementType.BOOL:
                return 0, 1
            case Convert(operand=a) if is_integer(a.type):
                return self.of(a)
            case _:
                return range_of_type(e.type)


def _absolute(a: Range) -> Range:
    ends = abs(a[0]), abs(a[1])
    return 0 if a[0] <= 0 <= a[1] else min(ends), max(ends)


def _at_corners(function: Callable[[int, int], int]) -> Callable[[Range, Range], Range]:
    """Return the rule of a function that is monotone in each operand, whatever the other one is."""

    def corners(a: Range, b: Range) -> Range:
        found = [function(x, y) for x in a for y in b]
        return min(found), max(found)

    return corners


def _quotient(a: Range, b: Range) -> Range:
    """Return where quotients towards zero lie; 0 by zero."""
    if b[0] > 0:
        return _at_corners(lambda x, y: abs(x) // y * (1 if x >= 0 else -1))(a, b)
    most = max(map(abs, a))
    return -most, most


def _remainder(a: Range, b: Range) -> Range:
    """Return where remainders lie, which have the sign of what is divided; 0 by zero."""
    most = max(0, max(map(abs, b)) - 1)
    return -min(most, max(0, -a[0])), min(most, max(0, a[1]))


def _conjunction(a: Range, b: Range) -> Range:
    ends = [r[1] for r in (a, b) if r[0] >= 0]
    return (0, min(ends)) if ends else _of_bits(a, b)


def _of_bits(a: Range, b: Range) -> Range:
    """Return all numbers with as many bits as the operands have."""
    bits = max(max(x, ~x).bit_length() for x in (*a, *b))
    return (0 if min(*a, *b) >= 0 else -(1 << bits)), (1 << bits) - 1


_OF_ONE: dict[UnaryFunction, Callable[[Range], Range]] = {
    UnaryOp.NEGATE: lambda a: (-a[1], -a[0]),
    UnaryOp.COMPLEMENT: lambda a: (~a[1], ~a[0]),
    UnaryOp.ABS: _absolute,
}

_OF_TWO: dict[BinaryFunction, Callable[[Range, Range], Range]] = {
    BinaryOp.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    BinaryOp.SUBTRACT: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    BinaryOp.MULTIPLY: _at_corners(lambda x, y: x * y),
    BinaryOp.MAXIMUM: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    BinaryOp.FMAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    BinaryOp.MINIMUM: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    BinaryOp.FMIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    BinaryOp.DIVIDE: _quotient,
    BinaryOp.REMAINDER: _remainder,
    BinaryOp.BIT_AND: _conjunction,
    BinaryOp.BIT_OR: _of_bits,
    BinaryOp.BIT_XOR: _of_bits,
}

_SHIFTS: dict[BinaryFunction, Callable[[Range, Range], Range]] = {
    BinaryOp.SHIFT_LEFT: _at_corners(lambda x, y: x << y),
    BinaryOp.SHIFT_RIGHT: _at_corners(lambda x, y: x >> y),
}
