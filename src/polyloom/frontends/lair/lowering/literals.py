"""Numbers that a type can hold."""

from __future__ import annotations

import numpy as np

from polyloom.diagnostics import Span
from polyloom.frontends.lair.lowering.faults import fail
from polyloom.ir.expressions import Constant
from polyloom.ir.types import ElementType


def literal(value: int | float, kind: ElementType, span: Span) -> Constant:
    """Return a literal of a type. Errors: ``lair-literal`` where the type cannot hold it."""
    if kind.is_float:
        return Constant(_float(value, kind, span), kind)
    if not isinstance(value, int):
        fail(
            "lair-literal",
            f"{value} is not an integer, but {kind.value} is needed here",
            span,
            help="write an integer, or convert the other operand to a float type",
        )
    limits = np.iinfo(kind.value)
    if not limits.min <= value <= limits.max:
        _refuse_range(value, kind, span, f"{limits.min} to {limits.max}")
    return Constant(value, kind)


def _float(value: int | float, kind: ElementType, span: Span) -> int | float:
    with np.errstate(over="ignore"):
        rounded = np.dtype(kind.value).type(float(value))
    if not np.isfinite(rounded):
        largest = np.finfo(kind.value).max
        _refuse_range(value, kind, span, f"up to {largest}")
    return value


def _refuse_range(value: int | float, kind: ElementType, span: Span, limits: str) -> None:
    fail(
        "lair-literal",
        f"{value} is too large for {kind.value}",
        span,
        label=f"{kind.value} holds {limits}",
        help="use a smaller number or a wider type",
    )
