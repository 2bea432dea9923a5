"""Counters that cannot wrap around are integers as wide as an address.

    int32 k in registers                        int64 k in registers
    k = 0                                       k = 0
    for i from 0 to 178:                        for i from 0 to 178:
      for j from 0 to i + 1:              ->      for j from 0 to i + 1:
        a[k] = A[i, j]                              a[k] = A[i, j]
        k = k + 1    # may wrap around              k = k + 1

A 32-bit counter that may wrap around is no linear subscript, so a C compiler makes no vectors of the loop.
How often each step is taken at most follows from the ranges of the loops around it; where the sum of all
steps stays in 32 bits, the counter has the same values in 64.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from polyloom.ir import expressions as scalar
from polyloom.ir.conditions import Range, range_of
from polyloom.ir.expressions import Binary, BinaryOp, Constant, Convert, Expression, Read
from polyloom.ir.expressions import walk as parts_of
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import ValueRanges, fits
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    If,
    Let,
    Load,
    Space,
    Statement,
    Store,
    Subscript,
    While,
)
from polyloom.mdh.tree.ranges import ends, starts
from polyloom.mdh.tree.rewrite import loads_of, walk, with_blocks
from polyloom.polyhedra.loops.tree import IntExpression, Number

NARROW, WIDE = ElementType.INT32, ElementType.INT64


def wide_counters(function: Function) -> Function:
    """Return a program whose counters in registers have 64 bits where 32 hold all that they may be.

    Keeps true: the same values. Sizes are numbers.
    """
    own = {s.name for s in function.body if isinstance(s, Array) and _is_counter(s)}
    asked = own & set(_in_subscripts(function.body))
    found = {name: values for name in asked if (values := _values(function.body, name)) is not None}
    if not found:
        return function
    return replace(function, body=_Wide(found, {}).code(function.body))


def _is_counter(array: Array) -> bool:
    return not array.shape and array.space is Space.REGISTER and array.type is NARROW


def _in_subscripts(code: Code) -> Iterator[str]:
    """Yield what subscripts load."""
    for statement in walk(code):
        places = [sub for load in loads_of(statement) for sub in load.subscripts]
        places += statement.subscripts if isinstance(statement, Store) else ()
        yield from (load.array for sub in places if isinstance(sub, Compute) for load in sub.loads)


def _values(code: Code, name: str) -> Range | None:
    """Return between which values a counter stays; None where it is no such, or may leave 32 bits."""
    begins: list[int] = []
    low = high = 0
    for store, times in _stores(code, {}, 1):
        if store.array != name:
            continue
        match store.value.expression:
            case Constant(value=value):
                begins.append(int(value))
            case Binary(op=BinaryOp.ADD | BinaryOp.SUBTRACT as op, left=Read(position=k), right=step) if (
                store.value.loads[k] == Load(name)
            ):
                steps = _steps(step)
                if steps is None or times is None:
                    return None
                least, most = steps if op is BinaryOp.ADD else (-steps[1], -steps[0])
                low, high = low + times * min(0, least), high + times * max(0, most)
            case _:
                return None
    values = (min(begins) + low, max(begins) + high) if begins else None
    return values if values is not None and fits(values, NARROW) else None


def _steps(step: Expression) -> Range | None:
    """Return between which numbers a step lies whatever arrays hold; None where an iterator says."""
    if any(isinstance(part, scalar.Iterator | scalar.ParameterValue) for part in parts_of(step)):
        return None
    return ValueRanges(()).of(step)


def _stores(code: Code, ranges: Mapping[str, Range], times: int | None) -> Iterator[tuple[Store, int | None]]:
    """Yield all stores, with how often each is done at most; None: nobody knows."""
    for statement in code:
        match statement:
            case Store():
                yield statement, times
            case For(body=body):
                inside = _range(statement, ranges)
                known = ranges if inside is None else {**ranges, statement.iterator: inside}
                trips = None if inside is None else max(0, inside[1] - inside[0] + 1)
                yield from _stores(body, known, None if times is None or trips is None else times * trips)
            case If(body=body, otherwise=otherwise):
                yield from _stores((*body, *otherwise), ranges, times)
            case While(body=body):
                yield from _stores(body, ranges, None)
            case _:
                pass


def _range(loop: For, ranges: Mapping[str, Range]) -> Range | None:
    """Return between which values an iterator lies; None where it goes down, or a bound is open."""
    if not isinstance(loop.step, Number) or loop.step.value < 1:
        return None
    try:
        upper = _known(ends(loop), ranges)
    except ValueError:
        return None
    lower = _known(starts(loop), ranges)
    if not lower or not upper:
        return None
    return max(low for low, _ in lower), min(high for _, high in upper) - 1


def _known(bounds: Iterable[IntExpression], ranges: Mapping[str, Range]) -> list[Range]:
    return [found for bound in bounds if (found := range_of(bound, ranges)) is not None]


@dataclass(frozen=True)
class _Wide:
    """``counters``: between which values each stays; ``ranges``: of the iterators around."""

    counters: Mapping[str, Range]
    ranges: Mapping[str, Range]

    def code(self, code: Code) -> Code:
        return tuple(map(self._statement, code))

    def _statement(self, statement: Statement) -> Statement:
        match statement:
            case Array(name=name) if name in self.counters:
                return replace(statement, type=WIDE)
            case Store(array=name) if name in self.counters:
                return replace(statement, value=self._counted(statement.value))
            case Store(subscripts=subscripts, value=value):
                places = tuple(map(self._subscript, subscripts))
                return replace(statement, subscripts=places, value=self._value(value))
            case Let(name=name, value=value):
                return Let(name, self._value(value))
            case If(condition=Compute() as condition) | While(condition=condition):
                return with_blocks(replace(statement, condition=self._value(condition)), self.code)
            case For(iterator=iterator):
                inside = _range(statement, self.ranges)
                known = self.ranges if inside is None else {**self.ranges, iterator: inside}
                return with_blocks(statement, _Wide(self.counters, known).code)
            case _:
                return with_blocks(statement, self.code)

    def _counted(self, value: Compute) -> Compute:
        """Return what a counter becomes, in 64 bits."""
        match value.expression:
            case Constant(value=number):
                return replace(value, expression=Constant(number, WIDE))
            case Binary(op=op, left=Read(position=k), right=step):
                inner = self._value(replace(value, expression=step))
                return replace(inner, expression=Binary(op, Read(k, WIDE), _widened(inner.expression)))
        raise AssertionError("a counter that is no counter")

    def _value(self, value: Compute) -> Compute:
        """Return a value in its own type; it loads counters of 64 bits."""

        def narrow(part: Expression) -> Expression | None:
            if isinstance(part, Read) and value.loads[part.position].array in self.counters:
                return Convert(NARROW, Read(part.position, WIDE))
            return None

        return replace(
            value, expression=rebuilt(value.expression, narrow), loads=tuple(map(self._load, value.loads))
        )

    def _load(self, load: Load) -> Load:
        return Load(load.array, tuple(map(self._subscript, load.subscripts)))

    def _subscript(self, subscript: Subscript) -> Subscript:
        if not isinstance(subscript, Compute):
            return subscript
        found = self._sum(subscript, subscript.expression)
        if found is None or not fits(found[1], NARROW):
            return self._value(subscript)
        return replace(subscript, expression=found[0])

    def _sum(self, value: Compute, part: Expression) -> tuple[Expression, Range] | None:
        """Return a sum of counters, iterators and numbers in 64 bits, and its values; None: it is another."""
        match part:
            case Read(position=k) if value.loads[k].array in self.counters:
                return Read(k, WIDE), self.counters[value.loads[k].array]
            case Constant(value=number) if part.type is NARROW:
                return Constant(number, WIDE), (int(number), int(number))
            case scalar.Iterator(dimension=d, type=kind) if kind is NARROW:
                values = range_of(value.iterators[d], self.ranges)
                fit = values is not None and fits(values, NARROW)
                return (scalar.Iterator(d, WIDE), values) if fit and values is not None else None
            case Binary(op=BinaryOp.ADD | BinaryOp.SUBTRACT as op, left=left, right=right):
                a, b = self._sum(value, left), self._sum(value, right)
                if a is None or b is None:
                    return None
                low, high = b[1] if op is BinaryOp.ADD else (-b[1][1], -b[1][0])
                return Binary(op, a[0], b[0]), (a[1][0] + low, a[1][1] + high)
            case _:
                return None


def _widened(step: Expression) -> Expression:
    return Constant(step.value, WIDE) if isinstance(step, Constant) else Convert(WIDE, step)
