"""A statement as an operation asks for it, before its operands are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.linear import Formula
from polyloom.frontends.graph.values import Value
from polyloom.ir.expressions import Expression
from polyloom.ir.reductions import Combine
from polyloom.ir.types import ElementType

Function = Callable[..., Expression]


@dataclass(frozen=True)
class Term:
    """A value read at ``places``, formulas of a statement's iterators."""

    value: Value
    places: tuple[Formula, ...]


@dataclass(frozen=True)
class Draft:
    """``out[write] reduction= function(terms)`` over ``domain``, with ``out`` of a ``shape``.

    ``function`` gets an expression for each term. ``hint``: what this is in its layer, for its name.
    ``fold``: whether it may be carried out at import.
    """

    domain: Sequence[int]
    terms: Sequence[Term]
    shape: Sequence[int]
    write: Sequence[Formula]
    function: Function
    reduction: Combine
    hint: str
    fold: bool

    def sums_halves(self) -> bool:
        """Tell whether it is a sum or product of float16, which goes on in float32."""
        adds = self.reduction in (Combine.ADD, Combine.MULTIPLY) and prod(self.domain) > prod(self.shape)
        floats = [t.value.type for t in self.terms if t.value.type.is_float]
        return adds and ElementType.FLOAT16 in floats and ElementType.FLOAT32 not in floats

    def is_narrow(self) -> bool:
        """Tell whether its function gives float16."""
        zeros = (scalar.number(0, t.value.type) for t in self.terms)
        return self.function(*zeros).type is ElementType.FLOAT16

    def widened(self) -> Draft:
        """Return the draft with float32 in place of float16."""

        def function(*operands: Expression) -> Expression:
            return self.function(*map(_widened, operands))

        return replace(self, function=function, hint=f"{self.hint}_wide".strip("_"))

    def reordered(self, places: Sequence[int]) -> Draft:
        """Return the draft with the axes of its result in another order."""
        shape, write = [self.shape[k] for k in places], [self.write[k] for k in places]
        return replace(self, shape=shape, write=write)


def _widened(x: Expression) -> Expression:
    return scalar.convert(x, ElementType.FLOAT32) if x.type is ElementType.FLOAT16 else x


def narrowed(x: Expression) -> Expression:
    """Return a number as float16."""
    return scalar.convert(x, ElementType.FLOAT16)
