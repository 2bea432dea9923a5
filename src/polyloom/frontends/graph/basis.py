"""What a core operation is written with: values and views, statements, scalar functions, refusals."""

from __future__ import annotations

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.builder import MOST_MADE, Builder, Function, Term, check_constant
from polyloom.frontends.graph.functions import is_extreme, is_nan
from polyloom.frontends.graph.linear import Formula, Linear, iterator, iterators
from polyloom.frontends.graph.refusal import Refused, refuse_if
from polyloom.frontends.graph.values import (
    Shape,
    Value,
    blocks,
    expanded,
    merged,
    reindexed,
    selected,
    sliced,
    split,
    squeezed,
    transposed,
    unsqueezed,
)
from polyloom.ir.expressions import BinaryOp, CompareOp, Expression, UnaryOp
from polyloom.ir.reductions import Combine
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.types import ElementType

__all__ = [
    "MOST_MADE",
    "BinaryFunction",
    "BinaryOp",
    "Builder",
    "Combine",
    "CompareOp",
    "ElementType",
    "Expression",
    "Formula",
    "Function",
    "Linear",
    "Refused",
    "Shape",
    "Term",
    "UnaryFunction",
    "UnaryOp",
    "Value",
    "blocks",
    "check_constant",
    "expanded",
    "is_extreme",
    "is_nan",
    "iterator",
    "iterators",
    "merged",
    "refuse_if",
    "reindexed",
    "scalar",
    "selected",
    "sliced",
    "split",
    "squeezed",
    "transposed",
    "unsqueezed",
]
