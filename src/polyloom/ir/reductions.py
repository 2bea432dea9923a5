"""How the points of a domain combine, and what a reduction starts from."""

from __future__ import annotations

from enum import Enum
from functools import cache

from polyloom.ir.expressions import Binary, Read
from polyloom.ir.host import CombineOperator, Combiner, Order
from polyloom.ir.scalar_functions.function import BINARY, BinaryFunction
from polyloom.ir.types import ElementType


class Combine(Enum):
    """How the points along one dimension of a domain combine.

    ``CONCATENATE`` (``++``) keeps them apart; the others reduce, starting from the operator's neutral
    element. A statement has at most one kind of reduction.
    """

    CONCATENATE = "++"
    ADD = "+"
    MULTIPLY = "*"
    MAXIMUM = "max"
    MINIMUM = "min"

    @property
    def operator(self) -> BinaryFunction | None:
        """The reduction's binary operator; None for ``++``."""
        return None if self is Combine.CONCATENATE else BINARY[self.value]


KEPT = CombineOperator(Order.CONCATENATE)


def neutral(reduction: Combine, kind: ElementType) -> float | int:
    """Return what a reduction starts from, a number of the element type; 0 for ``++``."""
    match reduction:
        case Combine.CONCATENATE | Combine.ADD:
            return 0.0 if kind.is_float else 0
        case Combine.MULTIPLY:
            return 1.0 if kind.is_float else 1
        case Combine.MAXIMUM:
            return kind.lowest
        case Combine.MINIMUM:
            return kind.highest


@cache
def combiner(reduction: Combine, kind: ElementType) -> Combiner:
    """Return a reduction's operator on elements of a type."""
    operator = reduction.operator
    assert operator is not None, reduction
    result = Binary(operator, Read(0, kind), Read(1, kind))
    return Combiner(name=reduction.value, results=(result,), neutral=(neutral(reduction, kind),))
