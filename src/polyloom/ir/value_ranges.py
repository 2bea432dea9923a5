"""Between which values a scalar function of integers lies, whatever its arrays hold.

``a[i] + 2 * b[i]`` of bytes that C computes as ``int``: from 0 to 765. What may wrap around lies anywhere in
its type. Source: interval arithmetic (Moore 1966); of bit operations by the bits of their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

from polyloom.ir.conditions import Range, range_of
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    Read,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import IntExpression

SIGNED = (ElementType.INT8, ElementType.INT16, ElementType.INT32, ElementType.INT64)
UNSIGNED = (ElementType.UINT8, ElementType.UINT16, ElementType.UINT32, ElementType.UINT64)
AS_UNSIGNED = dict(zip(SIGNED, UNSIGNED, strict=True))
"""Unsigned numbers of the same size, whose overflow is defined in C."""


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


@dataclass(frozen=True)
class FloatRange:
    """Between which numbers a float lies, where it is one; ``may_be_no_number``: it may be a NaN."""

    low: float
    high: float
    may_be_no_number: bool = False


_SLACK = 2.0**-9
"""More than any rounding of a float changes it by, in parts."""


class ValueRanges:
    """Ranges of integer expressions over a domain with these ``extents``; each is found once.

    ``reads``: where some reads are known to lie, by their positions; ``parameters``: those of the extents.
    """

    def __init__(
        self,
        extents: Sequence[IntExpression],
        reads: Mapping[int, Range] | None = None,
        parameters: Mapping[str, Range] | None = None,
    ) -> None:
        self.extents, self.reads = extents, dict(reads or {})
        self.parameters = parameters or {}
        self._known: dict[int, tuple[Expression, Range]] = {}

    def of(self, value: Expression) -> Range:
        """Return the least and the greatest value of an expression of integers."""
        if id(value) not in self._known:
            found, whole = self._range(value), range_of_type(value.type)
            self._known[id(value)] = value, found if fits(found, value.type) else whole
        return self._known[id(value)][1]

    def may_overflow(self, value: Expression) -> bool:
        """Whether the outermost function of integers may give more than their type has, and so wraps."""
        return not fits(self._range(value), value.type)

    def holds(self, condition: Expression) -> bool | None:
        """Whether a comparison of integers always holds, or never does; None: that depends on values."""
        match condition:
            case Compare(op=op, left=a, right=b) if is_integer(a.type) and op in _ORDERS:
                less, more = (a, b) if op in _LESS else (b, a)
                (low, high), (least, most) = self.of(less), self.of(more)
                if op in _STRICT:
                    return True if high < least else False if low >= most else None
                return True if high <= least else False if low > most else None
            case Compare(op=CompareOp.EQ | CompareOp.NE as op, left=a, right=b) if is_integer(a.type):
                (low, high), (least, most) = self.of(a), self.of(b)
                return op is CompareOp.NE if high < least or most < low else None
            case _:
                return None

    def of_float(self, value: Expression, where: Iterable[tuple[Expression, bool]] = ()) -> FloatRange | None:
        """Return where the numbers lie that an expression of floats may be; None where that is not known.

        ``where``: conditions, and whether they hold or do not.
        """
        given: list[_Given] = []
        for condition, holds in where:
            given += self._known_where(condition, given, holds=holds)
        found = self._float(value, given)
        return found if max(-found.low, found.high) < _LARGEST[value.type] else None

    def _float(self, e: Expression, given: Sequence[_Given]) -> FloatRange:
        """Return the range of floats where others lie as ``given``, if they are numbers."""
        found = self._float_of(e, given)
        for value, low, high in given:
            if value == e:
                found = replace(found, low=max(found.low, low), high=min(found.high, high))
        return found

    def _float_of(self, e: Expression, given: Sequence[_Given]) -> FloatRange:
        match e:
            case Constant(value=value) if isfinite(value):
                return _rounded(float(value), float(value), e.type, no_number=False)
            case Convert(operand=a) if a.type is ElementType.BOOL:
                return FloatRange(0.0, 1.0)
            case Convert(operand=a) if is_integer(a.type):
                values = self.of(a)
                return _rounded(float(values[0]), float(values[1]), e.type, no_number=False)
            case Convert(operand=a):
                found = self._float(a, given)
                return _rounded(found.low, found.high, e.type, no_number=found.may_be_no_number)
            case Unary(op=op, operand=a) if op in _FLOATS_OF_ONE:
                found = self._float(a, given)
                low, high = _FLOATS_OF_ONE[op](found.low, found.high)
                return FloatRange(low, high, found.may_be_no_number)
            case Binary(op=op, left=a, right=b) if op in _FLOATS_OF_TWO:
                first, second = self._float(a, given), self._float(b, given)
                no_number = first.may_be_no_number or second.may_be_no_number
                low, high = _FLOATS_OF_TWO[op]((first.low, first.high), (second.low, second.high))
                if op in _EXACT:
                    return _extreme(op, FloatRange(low, high, no_number), first, second)
                return _rounded(low, high, e.type, no_number=no_number)
            case Select(condition=c, then=a, otherwise=b):
                first = self._float(a, (*given, *self._known_where(c, given, holds=True)))
                second = self._float(b, (*given, *self._known_where(c, given, holds=False)))
                no_number = first.may_be_no_number or second.may_be_no_number
                return FloatRange(min(first.low, second.low), max(first.high, second.high), no_number)
            case _:
                return FloatRange(-inf, inf, may_be_no_number=True)

    def _known_where(self, c: Expression, given: Sequence[_Given], *, holds: bool) -> Iterable[_Given]:
        """Yield where compared floats lie where a comparison holds, or does not."""
        if isinstance(c, Compare) and c.left.type.is_float and c.op in _ORDERS:
            less, more = (c.left, c.right) if (c.op in _LESS) == holds else (c.right, c.left)
            low, high = self._float(less, given), self._float(more, given)
            # with a NaN no comparison holds
            if holds or not high.may_be_no_number:
                yield less, -inf, high.high
            if holds or not low.may_be_no_number:
                yield more, low.low, inf

    def is_shift_within(self, count: Expression, kind: ElementType) -> bool:
        """Whether a shift of a type by ``count`` always leaves a bit; what others give is not one rule."""
        low, high = self.of(count)
        return low >= 0 and high < 8 * kind.size

    def _range(self, e: Expression) -> Range:
        match e:
            case Constant(value=number, type=kind):
                value = wrapped(int(number), kind)
                return value, value
            case Read(position=k) if k in self.reads:
                return self.reads[k]
            case Iterator(dimension=k) if k < len(self.extents):
                points = range_of(self.extents[k], self.parameters)
                return range_of_type(e.type) if points is None else (0, max(0, points[1] - 1))
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


_Floats = tuple[float, float]
_Given = tuple[Expression, float, float]

_LESS = (CompareOp.LT, CompareOp.LE)
_ORDERS = (*_LESS, CompareOp.GT, CompareOp.GE)
_STRICT = (CompareOp.LT, CompareOp.GT)

_LARGEST = {ElementType.FLOAT16: 6e4, ElementType.FLOAT32: 1e38, ElementType.FLOAT64: 1e300}
"""Numbers of a type that are no infinities, however they are rounded."""


def _rounded(low: float, high: float, kind: ElementType, *, no_number: bool) -> FloatRange:
    """Return a range after rounding; all numbers where there may be infinities, of which NaNs come."""
    if not -_LARGEST[kind] < low <= high < _LARGEST[kind]:
        return FloatRange(-inf, inf, may_be_no_number=True)
    slack = max(abs(low), abs(high)) * _SLACK
    return FloatRange(low - slack, high + slack, no_number)


def _extreme(op: BinaryFunction, found: FloatRange, a: FloatRange, b: FloatRange) -> FloatRange:
    """Return the range of a maximum or minimum; C's takes the other operand where one is a NaN."""
    others = [y for x, y in ((a, b), (b, a)) if x.may_be_no_number and op in (BinaryOp.FMAX, BinaryOp.FMIN)]
    low, high = min([found.low, *(o.low for o in others)]), max([found.high, *(o.high for o in others)])
    return replace(found, low=low, high=high)


def _product(a: _Floats, b: _Floats) -> _Floats:
    if not all(map(isfinite, (*a, *b))):
        return -inf, inf
    found = [x * y for x in a for y in b]
    return min(found), max(found)


_FLOATS_OF_ONE: dict[UnaryFunction, Callable[[float, float], _Floats]] = {
    UnaryOp.NEGATE: lambda low, high: (-high, -low),
    UnaryOp.ABS: lambda low, high: (0.0, max(abs(low), abs(high))),
    **dict.fromkeys(
        (UnaryOp.FLOOR, UnaryOp.CEIL, UnaryOp.ROUND, UnaryOp.TRUNC), lambda low, high: (low - 1, high + 1)
    ),
}

_FLOATS_OF_TWO: dict[BinaryFunction, Callable[[_Floats, _Floats], _Floats]] = {
    BinaryOp.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    BinaryOp.SUBTRACT: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    BinaryOp.MULTIPLY: _product,
    BinaryOp.MAXIMUM: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    BinaryOp.FMAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    BinaryOp.MINIMUM: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    BinaryOp.FMIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
}
_EXACT = (BinaryOp.MAXIMUM, BinaryOp.FMAX, BinaryOp.MINIMUM, BinaryOp.FMIN)


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
