"""Questions about all lanes of a vector in registers, which have instructions of their own."""

from __future__ import annotations

from functools import reduce

from polyloom.ir.expressions import Binary, BinaryOp, Expression, Read
from polyloom.ir.types import ElementType
from polyloom.mdh.tree.nodes import Compute, Load
from polyloom.polyhedra.loops.tree import Number


def any_lane(array: str, lanes: int) -> Compute:
    """Return whether any of the truth values of a vector, ``array[lane]``, is true."""
    parts: list[Expression] = [Read(k, ElementType.BOOL) for k in range(lanes)]
    asked = reduce(_or, parts)
    return Compute(asked, tuple(Load(array, (Number(k),)) for k in range(lanes)))


def asked_of_any_lane(condition: Compute) -> str | None:
    """Return the vector of which ``any_lane`` made a condition; None where it is another one."""
    array = condition.loads[0].array if condition.loads else ""
    return array if condition == any_lane(array, max(1, len(condition.loads))) else None


def _or(a: Expression, b: Expression) -> Expression:
    return Binary(BinaryOp.OR, a, b)
