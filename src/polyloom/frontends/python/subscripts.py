"""Subscripts that are read from data, ``y[index[i]]``: what keeps them in their arrays.

In the model the index is free, ``{ S[i] -> y[k] : 0 <= k < n }``. The program computes it as Python does,
from the end where it is negative, and moves one that is outside into the array; which one was is kept in a
variable, and the call is refused when it has run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from polyloom.frontends.python.affine import PREFIX, Affine
from polyloom.ir.expressions import Binary, Compare, CompareOp, Constant, Expression, ParameterValue, Select
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.scalar_functions.table import BinaryOp
from polyloom.ir.types import ElementType

INT = ElementType.INT64
MARK = "0"
"""How the names of such indices begin, as no name of Python's does."""
_OF_DATA = re.compile(rf"\b{PREFIX}{MARK}")


@dataclass(frozen=True)
class Datum:
    """An index that is read from data: ``extent``: that of the dimension, or part of one, that it is in."""

    name: str
    node: ast.expr
    extent: Affine

    @property
    def limits(self) -> str:
        """Where it is, in isl's notation."""
        return f"0 <= {PREFIX}{self.name} < {self.extent.text}"


def is_of_data(text: str) -> bool:
    """Return whether a text in isl's notation speaks of such an index."""
    return _OF_DATA.search(text) is not None


def within(index: Expression, extent: Expression) -> Expression:
    """Return the element that an index of Python means, or one of the array where it means none."""
    counted = Select(_is_negative(index), index + extent, index)
    above = Binary(BinaryOp.MAXIMUM, counted, Constant(0, INT))
    return Binary(BinaryOp.MINIMUM, above, extent - Constant(1, INT))


def is_outside(index: Expression, extent: Expression) -> Expression:
    """Return whether an index of Python means no element."""
    below = Compare(CompareOp.LT, index + extent, Constant(0, INT))
    beyond = Compare(CompareOp.GE, index, extent)
    return Binary(BinaryOp.OR, Binary(BinaryOp.AND, _is_negative(index), below), beyond)


def _is_negative(index: Expression) -> Expression:
    return Compare(CompareOp.LT, index, Constant(0, INT))


def with_values(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Return an expression with the values of such indices in it."""
    return rebuilt(
        expression, lambda part: values.get(part.name) if isinstance(part, ParameterValue) else None
    )
