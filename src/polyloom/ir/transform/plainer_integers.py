"""Functions of integers in plainer forms, of which value ranges know more and processors have instructions.

    a < b ? a : b  ->  min(a, b)        a < 0 ? -a : a  ->  abs(a)        a / 8  ->  a >> 3   where 0 <= a
    a >> b  ->  a >> (b & 31)   where 0 <= b < 32       a > 255 ? 255 : uint8(a)  ->  uint8(min(a, 255))

Not in the papers.
"""

from __future__ import annotations

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import ValueRanges, fits, is_integer


class Plainer:
    """Rewrites expressions of which the ``ranges`` are known; each is rewritten once."""

    def __init__(self, ranges: ValueRanges) -> None:
        self.ranges = ranges
        self._known: dict[int, tuple[Expression, Expression]] = {}

    def of(self, e: Expression) -> Expression:
        """Return an expression with the same value."""
        if id(e) not in self._known:
            self._known[id(e)] = e, self._rewritten(e)
        return self._known[id(e)][1]

    def _rewritten(self, e: Expression) -> Expression:
        match e:
            case Unary(op=op, operand=a):
                return Unary(op, self.of(a))
            case Binary(op=op, left=a, right=b):
                return self._binary(Binary(op, self.of(a), self.of(b)))
            case Compare(op=op, left=a, right=b):
                return Compare(op, self.of(a), self.of(b))
            case Convert(type=kind, operand=a):
                return Convert(kind, self.of(a))
            case Select(condition=c, then=a, otherwise=b):
                return self._select(Select(self.of(c), self.of(a), self.of(b)))
            case _:
                return e

    def _binary(self, e: Binary) -> Expression:
        """Divide what is not negative by powers of two as shifts do; mask counts of shifts that leave a bit.

        A mask changes nothing, and shows printers that the shift needs no care.
        """
        match e:
            case Binary(op=BinaryOp.DIVIDE, left=a, right=Constant(value=int(value), type=kind)) if (
                is_integer(kind) and _is_power_of_two(value) and self.ranges.of(a)[0] >= 0
            ):
                return Binary(BinaryOp.SHIFT_RIGHT, a, Constant(value.bit_length() - 1, kind))
            case Binary(op=BinaryOp.REMAINDER, left=a, right=Constant(value=int(value), type=kind)) if (
                is_integer(kind) and _is_power_of_two(value) and self.ranges.of(a)[0] >= 0
            ):
                return Binary(BinaryOp.BIT_AND, a, Constant(value - 1, kind))
            case Binary(op=BinaryOp.SHIFT_LEFT | BinaryOp.SHIFT_RIGHT as op, left=a, right=count) if (
                not isinstance(count, Constant) and self.ranges.is_shift_within(count, e.type)
            ):
                return Binary(
                    op, a, Binary(BinaryOp.BIT_AND, count, Constant(8 * e.type.size - 1, count.type))
                )
            case _:
                return e

    def _select(self, e: Select) -> Expression:
        c = e.condition
        if not is_integer(e.type) or not isinstance(c, Compare):
            return e
        if (converted := self._converted_afterwards(e)) is not None:
            return converted
        if c.left.type is not e.type:
            return e
        if c.op in (CompareOp.GT, CompareOp.GE):
            c = Compare(c.op.turned, c.right, c.left)
        if c.op not in (CompareOp.LT, CompareOp.LE):
            return e
        a, b = c.left, c.right
        if (e.then, e.otherwise) == (a, b):
            return Binary(BinaryOp.MINIMUM, a, b)
        if (e.then, e.otherwise) == (b, a):
            return Binary(BinaryOp.MAXIMUM, a, b)
        return self._clamped(e, a, b) or _magnitude(e, a, b) or e

    def _converted_afterwards(self, e: Select) -> Expression | None:
        """Return ``a > k ? k : uint8(a)`` as ``uint8(min(a, k))``; None where it stays a choice."""
        match e.then, e.otherwise:
            case Constant(value=int(value)), Convert(operand=x) if _has(x.type, value):
                inner = Select(e.condition, Constant(value, x.type), x)
            case Convert(operand=x), Constant(value=int(value)) if _has(x.type, value):
                inner = Select(e.condition, x, Constant(value, x.type))
            case _:
                return None
        chosen = self._select(inner)
        return None if isinstance(chosen, Select) else Convert(e.type, chosen)

    def _clamped(self, e: Select, a: Expression, b: Expression) -> Expression | None:
        """Return ``a < k ? k : min(a, c)`` as ``max(min(a, c), k)``, or its mirror image; None: neither."""
        match e.otherwise:
            case Binary(op=BinaryOp.MINIMUM, left=x, right=y) if e.then == b and a in (x, y):
                bound = y if x == a else x
                if self.ranges.of(bound)[0] >= self.ranges.of(b)[1]:
                    return Binary(BinaryOp.MAXIMUM, e.otherwise, b)
            case Binary(op=BinaryOp.MAXIMUM, left=x, right=y) if e.then == a and b in (x, y):
                bound = y if x == b else x
                if self.ranges.of(bound)[1] <= self.ranges.of(a)[0]:
                    return Binary(BinaryOp.MINIMUM, e.otherwise, a)
            case _:
                pass
        return None


def _has(kind: ElementType, value: int) -> bool:
    return is_integer(kind) and fits((value, value), kind)


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _magnitude(e: Select, a: Expression, b: Expression) -> Expression | None:
    """Return ``a < 0 ? -a : a``, and the same from the other side, as an absolute value; None: it is none."""
    if isinstance(b, Constant) and b.value == 0 and _is_negated(e.then, a) and e.otherwise == a:
        return Unary(UnaryOp.ABS, a)
    if isinstance(a, Constant) and a.value == 0 and _is_negated(e.otherwise, b) and e.then == b:
        return Unary(UnaryOp.ABS, b)
    return None


def _is_negated(e: Expression, a: Expression) -> bool:
    match e:
        case Unary(op=UnaryOp.NEGATE, operand=operand):
            return operand == a
        case Binary(op=BinaryOp.SUBTRACT, left=Constant(value=0), right=operand):
            return operand == a
        case _:
            return False
