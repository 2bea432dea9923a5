"""How the points of a domain combine, and what a reduction starts from."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from functools import cache

from polyloom.ir.expressions import Binary, Constant, Convert, Expression, Read
from polyloom.ir.host import CombineOperator, Combiner, MdHom, Order
from polyloom.ir.rebuild import with_value
from polyloom.ir.scalar_functions.function import BINARY, BinaryFunction
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import AS_UNSIGNED


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


_WIDE = (ElementType.INT32, ElementType.INT64)


def is_plain_sum(hom: MdHom, kind: ElementType) -> bool:
    """Whether an md_hom reduces one term of a type by ``+`` and does nothing else but keep points apart."""
    operators = {o.combiner for o in hom.combine if o.order is not Order.CONCATENATE}
    alone = len(hom.terms) == 1 and hom.terms[0].type is kind
    in_any_order = all(o.order is not Order.PREFIX for o in hom.combine)
    return alone and in_any_order and operators == {combiner(Combine.ADD, kind)}


def with_combiner(hom: MdHom, operator: Combiner) -> MdHom:
    """Return an md_hom that reduces by another operator."""
    changed = (o if o.combiner is None else replace(o, combiner=operator) for o in hom.combine)
    return replace(hom, combine=tuple(changed))


def unsigned_sum(hom: MdHom) -> MdHom:
    """Return an md_hom with a sum of signed integers as one of unsigned integers, of which it takes the bits.

        total += a[i] * b[i]    ->    unsigned total += (unsigned)(a[i] * b[i]);  total = (signed)total

    Overflow of unsigned integers is defined in C, and C compilers know sums of products and of distances as
    such alone. Others are returned as they are.
    """
    kind = hom.terms[0].type
    if kind not in _WIDE or not is_plain_sum(hom, kind):
        return hom
    bits, (initial,), (finish,) = AS_UNSIGNED[kind], hom.initial, hom.finish
    result = len(hom.inputs)
    signed = Convert(kind, Read(result, bits))

    def in_bits(value: Expression) -> Expression:
        if isinstance(value, Constant) and value.value >= 0:
            return Constant(value.value, bits)
        return Convert(bits, value)

    return replace(
        with_combiner(hom, combiner(Combine.ADD, bits)),
        terms=(in_bits(hom.terms[0]),),
        initial=(None if initial is None else in_bits(initial),),
        finish=(signed if finish is None else with_value(finish, result, signed),),
    )
