"""Scalar functions and elements of an md_hom at a point, as values and loads of the kernel tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from polyloom.ir import expressions as scalar
from polyloom.ir.expressions import BinaryOp, Constant, Convert, Expression, ParameterValue, Read
from polyloom.ir.host import Combiner, Index, MdHom, View
from polyloom.ir.rebuild import Leaf, with_leaves
from polyloom.ir.types import ElementType
from polyloom.mdh.schedule.addresses import Buffers
from polyloom.mdh.schedule.risks import risky_reads
from polyloom.mdh.tree.nodes import Compute, Load, Subscript
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of

Placing = Callable[[Compute], Expression]
"""Gives a value's expression over the loads and integers of a larger one."""


@dataclass(frozen=True)
class Points:
    """What an md_hom reads and computes where its iterators have the values ``at``."""

    hom: MdHom
    buffers: Buffers
    at: tuple[IntExpression, ...]
    written: bool = False
    """Whether results are started and finished only where they are written, by the bounds of loops."""

    @cached_property
    def _risky(self) -> frozenset[int]:
        return risky_reads(self.hom, self.buffers, written=self.written)

    def value(self, expression: Expression, results: Sequence[Load] = ()) -> Compute:
        """Return a scalar function; ``results`` are the reads behind the inputs."""
        count = len(self.hom.inputs)

        def read(k: int, kind: ElementType) -> Compute:
            return loaded(results[k - count] if k >= count else self.load(k), kind)

        return self._computed(expression, read)

    def combined(
        self, combiner: Combiner, left: Sequence[Compute], right: Sequence[Compute]
    ) -> tuple[Compute, ...]:
        """Return ``left op right``, a value for each output."""
        values = [*left, *right]
        return tuple(self._computed(result, lambda k, kind: values[k]) for result in combiner.results)

    def _computed(self, expression: Expression, read: Callable[[int, ElementType], Compute]) -> Compute:
        def leaf(part: Leaf, placed: Placing) -> Expression:
            match part:
                case Read(position=k, type=kind):
                    return placed(read(k, kind))
                case scalar.Iterator(dimension=d, type=kind):
                    return placed(integer_value(self.at[d], kind))
                case ParameterValue(name=name, type=kind):
                    return placed(integer_value(Name(name), kind))
                case _:
                    return part

        return computed(lambda placed: with_leaves(expression, lambda part: leaf(part, placed)))

    def load(self, k: int) -> Load:
        """Return the element of an input; of one that may lie outside where it is not chosen, the nearest."""
        view = self.hom.inputs[k]
        return Load(view.buffer, self.subscripts(view, nearest=k in self._risky))

    def subscripts(self, view: View, nearest: bool = False) -> tuple[Subscript, ...]:
        """Return where a view's element is."""
        found = tuple(self._subscript(index) for index in view.indices)
        if not nearest:
            return found
        pairs = zip(found, self.buffers[view.buffer].shape, strict=True)
        return tuple(_nearest(subscript, extent) for subscript, extent in pairs)

    def _subscript(self, index: Index | Expression) -> Subscript:
        if not isinstance(index, Index):
            return self.value(index)
        terms = [(c, a) for c, a in zip(index.coefficients, self.at, strict=True) if c]
        return sum_of([*terms, (1, index.offset)])


def _nearest(subscript: Subscript, extent: IntExpression) -> Subscript:
    """Return the position of the element that lies nearest to where a subscript may point outside."""
    last = sum_of([(1, extent), (-1, Number(1))])
    if not isinstance(subscript, Compute):
        return Operation("max", (Operation("min", (subscript, last)), Number(0)))

    def function(placed: Placing) -> Expression:
        inside = Convert(ElementType.INT64, placed(subscript))
        highest = placed(integer_value(last, ElementType.INT64))
        lower = scalar.Binary(BinaryOp.MINIMUM, inside, highest)
        return scalar.Binary(BinaryOp.MAXIMUM, lower, Constant(0, ElementType.INT64))

    return computed(function)


def loaded(load: Load, kind: ElementType) -> Compute:
    """Return a loaded value."""
    return Compute(Read(0, kind), (load,))


def integer_value(integer: IntExpression, kind: ElementType) -> Compute:
    """Return an integer as a value."""
    return Compute(scalar.Iterator(0, kind), (), (integer,))


class _Parts:
    """The loads and integers of a scalar function that is put together, each once."""

    def __init__(self) -> None:
        self.loads: list[Load] = []
        self.integers: list[IntExpression] = []

    def placed(self, value: Compute) -> Expression:
        """Return a value's expression over the loads and integers of the whole."""

        def leaf(part: Leaf) -> Expression:
            match part:
                case Read(position=k, type=kind):
                    return Read(_position(self.loads, value.loads[k]), kind)
                case scalar.Iterator(dimension=d, type=kind):
                    return scalar.Iterator(_position(self.integers, value.iterators[d]), kind)
                case _:
                    return part

        return with_leaves(value.expression, leaf)


def _position(known: list[Any], wanted: object) -> int:
    if wanted not in known:
        known.append(wanted)
    return known.index(wanted)


def computed(function: Callable[[Placing], Expression]) -> Compute:
    """Return a scalar function of values: ``function`` gets what puts a value into it."""
    parts = _Parts()
    made = function(parts.placed)
    return Compute(made, tuple(parts.loads), tuple(parts.integers))
