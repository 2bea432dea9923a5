"""The combine operators that C has signs or functions for."""

from __future__ import annotations

import numpy as np

from polyloom.ir.expressions import Binary, BinaryOp, Read
from polyloom.ir.host import Combiner
from polyloom.ir.types import ElementType

ASSOCIATIVE = frozenset(
    {
        BinaryOp.ADD,
        BinaryOp.MULTIPLY,
        BinaryOp.MAXIMUM,
        BinaryOp.MINIMUM,
        BinaryOp.FMAX,
        BinaryOp.FMIN,
        BinaryOp.BIT_AND,
        BinaryOp.BIT_OR,
        BinaryOp.BIT_XOR,
    }
)
"""Floating-point sums and products are reassociated, as md_poly does."""


def combiner(op: BinaryOp, type_: ElementType) -> Combiner:
    """Return an operator on one value, with its neutral element."""
    return Combiner(op.value, (Binary(op, Read(0, type_), Read(1, type_)),), (neutral(op, type_),))


def neutral(op: BinaryOp, type_: ElementType) -> float | int:
    """Return the value that changes nothing: 0 for sums, the lowest value for ``max``."""
    if op in (BinaryOp.MAXIMUM, BinaryOp.FMAX):
        return -np.inf if type_.is_float else int(np.iinfo(type_.value).min)
    if op in (BinaryOp.MINIMUM, BinaryOp.FMIN):
        return np.inf if type_.is_float else int(np.iinfo(type_.value).max)
    if op is BinaryOp.BIT_AND:
        return -1 if type_.value.startswith("int") else int(np.iinfo(type_.value).max)
    return 1 if op is BinaryOp.MULTIPLY else 0
