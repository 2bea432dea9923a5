"""Integer functions of one iterator as a few lines, one after another.

    (i + 1) % 8  for i in 0 .. 7   ->   i + 1 from 0 to 6,  i - 7 at 7
    i == 0 ? 7 : i - 1             ->   7 at 0,  i - 1 from 1 to 7

Sizes are numbers here. What wraps around in its type, or has more lines than a few, has none.
Not in the papers; the field calls what follows index-set splitting (Griebl, Feautrier, Lengauer 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

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
from polyloom.ir.expressions import Iterator as IteratorValue
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import fits, is_integer

MOST_LINES = 8
"""Of a function: those of borders have two or three, ``i % 4`` has as many as there are fours."""


@dataclass(frozen=True)
class Line:
    """``slope * i + constant`` for i from ``start`` to before ``end``, which is behind it."""

    start: int
    end: int
    slope: int
    constant: int

    def at(self, i: int) -> int:
        """Return the value at a point."""
        return self.slope * i + self.constant

    def within(self, start: int, end: int) -> Line:
        """Return the same line between other ends."""
        return Line(start, end, self.slope, self.constant)


class HasNone(Exception):
    """A function has no lines, or more than a few."""


def lines_of(function: Expression, dimension: int, extent: int) -> list[Line] | None:
    """Return the lines of a function of the iterator of a dimension, none of which goes on as the next one.

    None: it has none, is of other things as well, or of no iterator.
    """
    if extent <= 0 or not is_integer(function.type):
        return None
    try:
        return _few(_Lines(dimension).of(function, 0, extent))
    except HasNone:
        return None


@dataclass(frozen=True)
class _Lines:
    dimension: int

    def of(self, e: Expression, start: int, end: int) -> list[Line]:
        """Return the lines of a part of the function between two points; all values fit into its type."""
        found = _few(self._of(e, start, end))
        for line in found:
            ends = sorted((line.at(line.start), line.at(line.end - 1)))
            if not is_integer(e.type) or not fits((ends[0], ends[1]), e.type):
                raise HasNone
        return found

    def _of(self, e: Expression, start: int, end: int) -> list[Line]:
        match e:
            case Constant(value=int(value)):
                return [Line(start, end, 0, value)]
            case IteratorValue(dimension=d) if d == self.dimension:
                return [Line(start, end, 1, 0)]
            case Convert(operand=a) if is_integer(a.type):
                return self.of(a, start, end)
            case Unary(op=UnaryOp.NEGATE, operand=a):
                return [Line(k.start, k.end, -k.slope, -k.constant) for k in self.of(a, start, end)]
            case Binary(op=op, left=a, right=b) if op in _OF_LINES:
                pairs = _pairs(self.of(a, start, end), self.of(b, start, end))
                return [line for x, y in pairs for line in _OF_LINES[op](x, y)]
            case Select(condition=c, then=a, otherwise=b):
                found = self._truths(c, start, end)
                return [line for s, t, holds in found for line in self.of(a if holds else b, s, t)]
            case _:
                raise HasNone

    def _truths(self, c: Expression, start: int, end: int) -> list[tuple[int, int, bool]]:
        """Return whether a condition holds, from where to where."""
        match c:
            case Compare(op=op, left=a, right=b):
                pairs = _pairs(self.of(a, start, end), self.of(b, start, end))
                return [(s, t, _TRUE[op](sign)) for x, y in pairs for s, t, sign in _signs(_minus(x, y))]
            case Unary(op=UnaryOp.NOT, operand=a):
                return [(s, t, not holds) for s, t, holds in self._truths(a, start, end)]
            case Binary(op=BinaryOp.AND | BinaryOp.OR as op, left=a, right=b) if c.type is ElementType.BOOL:
                decides = op is BinaryOp.OR
                return [
                    part
                    for s, t, holds in self._truths(a, start, end)
                    for part in ([(s, t, holds)] if holds == decides else self._truths(b, s, t))
                ]
            case _:
                raise HasNone


def _few(lines: list[Line]) -> list[Line]:
    """Join lines that go on as the next one; raise where many are left."""
    found: list[Line] = []
    for line in lines:
        if found and (found[-1].slope, found[-1].constant) == (line.slope, line.constant):
            found[-1] = found[-1].within(found[-1].start, line.end)
        else:
            found.append(line)
    if len(found) > MOST_LINES:
        raise HasNone
    return found


def _pairs(a: list[Line], b: list[Line]) -> list[tuple[Line, Line]]:
    """Return two functions over the same points as lines between the same ends."""
    ends = sorted({line.start for line in (*a, *b)} | {a[-1].end})
    found, x, y = [], iter(a), iter(b)
    first, second = next(x), next(y)
    for start, end in pairwise(ends):
        first = first if first.end > start else next(x)
        second = second if second.end > start else next(y)
        found.append((first.within(start, end), second.within(start, end)))
    return found


def _plus(x: Line, y: Line) -> Line:
    return Line(x.start, x.end, x.slope + y.slope, x.constant + y.constant)


def _minus(x: Line, y: Line) -> Line:
    return Line(x.start, x.end, x.slope - y.slope, x.constant - y.constant)


def _times(x: Line, y: Line) -> list[Line]:
    if x.slope and y.slope:
        raise HasNone
    line, by = (x, y.constant) if not y.slope else (y, x.constant)
    return [Line(x.start, x.end, by * line.slope, by * line.constant)]


def _divisor(line: Line) -> int:
    if line.slope or line.constant <= 0:
        raise HasNone
    return line.constant


def _quotient(x: Line, y: Line) -> list[Line]:
    by = _divisor(y)
    return [Line(s, t, 0, q) for s, t, q in _constant(x, lambda i: _towards_zero(x.at(i), by))]


def _remainder(x: Line, y: Line) -> list[Line]:
    by = _divisor(y)
    parts = _constant(x, lambda i: _towards_zero(x.at(i), by))
    return [Line(s, t, x.slope, x.constant - q * by) for s, t, q in parts]


def _masked(x: Line, y: Line) -> list[Line]:
    """``x & 7`` is a remainder that is not negative."""
    by = _divisor(y) + 1
    if by & (by - 1):
        raise HasNone
    parts = _constant(x, lambda i: x.at(i) // by)
    return [Line(s, t, x.slope, x.constant - q * by) for s, t, q in parts]


def _least(x: Line, y: Line) -> list[Line]:
    return [(x if sign < 0 else y).within(s, t) for s, t, sign in _signs(_minus(x, y))]


def _greatest(x: Line, y: Line) -> list[Line]:
    return [(x if sign > 0 else y).within(s, t) for s, t, sign in _signs(_minus(x, y))]


_OF_LINES: dict[BinaryFunction, Callable[[Line, Line], list[Line]]] = {
    BinaryOp.ADD: lambda x, y: [_plus(x, y)],
    BinaryOp.SUBTRACT: lambda x, y: [_minus(x, y)],
    BinaryOp.MULTIPLY: _times,
    BinaryOp.DIVIDE: _quotient,
    BinaryOp.REMAINDER: _remainder,
    BinaryOp.BIT_AND: _masked,
    BinaryOp.MINIMUM: _least,
    BinaryOp.MAXIMUM: _greatest,
}

_TRUE: dict[CompareOp, Callable[[int], bool]] = {
    CompareOp.LT: lambda sign: sign < 0,
    CompareOp.LE: lambda sign: sign <= 0,
    CompareOp.GT: lambda sign: sign > 0,
    CompareOp.GE: lambda sign: sign >= 0,
    CompareOp.EQ: lambda sign: sign == 0,
    CompareOp.NE: lambda sign: sign != 0,
}
"""Whether a comparison holds, by the sign of the difference of its sides."""


def _towards_zero(a: int, b: int) -> int:
    return a // b if a >= 0 else -(-a // b)


def _signs(line: Line) -> Iterator[tuple[int, int, int]]:
    """Yield from where to where a line is negative, 0 or positive, as -1, 0 and 1."""
    return _constant(line, lambda i: (line.at(i) > 0) - (line.at(i) < 0))


def _constant(line: Line, step: Callable[[int], int]) -> Iterator[tuple[int, int, int]]:
    """Yield from where to where a function that only grows, or only falls, along a line stays the same."""
    start, parts = line.start, 0
    while start < line.end:
        value, low, high = step(start), start + 1, line.end
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if step(middle) == value else (low, middle)
        yield start, low, value
        start, parts = low, parts + 1
        if parts > MOST_LINES:
            raise HasNone
