"""The number of arithmetic operations of an md_hom, for rates in GFLOP/s."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from polyloom.ir.evaluation.inputs import NO_PARAMETERS
from polyloom.ir.expressions import Binary, Compare, Expression, Unary, walk
from polyloom.ir.host import MdHom, Order
from polyloom.ir.integers import integer


def operation_count(hom: MdHom, parameters: Mapping[str, int] = NO_PARAMETERS) -> int:
    """Return the operations of one launch, each point's term and its combination counted, guards not.

    A matrix product has 2 m n k. ``parameters``: values of what extents name.
    """
    points = prod(max(0, integer(extent, parameters)) for extent in hom.extents)
    combines = [o for o in hom.combine if o.order in (Order.POINTWISE, Order.PREFIX) and o.combiner]
    per_point = sum(map(_operations, hom.terms))
    if combines and combines[0].combiner is not None:
        per_point += sum(map(_operations, combines[0].combiner.results))
    return points * max(1, per_point)


def _operations(expression: Expression) -> int:
    return sum(isinstance(part, Binary | Unary | Compare) for part in walk(expression))
