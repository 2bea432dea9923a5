"""The type in which operands of several types are compared. Source: PyTorch, Type Promotion.

Tensors with dimensions come first, then tensors without, then numbers: a later one widens the type only where
it is of a higher kind (truth values, integers, floats).
"""

from __future__ import annotations

import numpy as np

from polyloom.frontends.graph.core import ElementType
from polyloom.frontends.torch.call import Call


def _kind(kind: ElementType) -> int:
    return 2 if kind.is_float else 0 if kind is ElementType.BOOL else 1


def _joined(found: ElementType | None, other: ElementType) -> ElementType:
    """Return the type of two of one rank; of halves and integers it is the half."""
    if found is None or _kind(found) < _kind(other):
        return other
    if _kind(found) > _kind(other):
        return found
    return ElementType(np.promote_types(found.dtype, other.dtype).name)


def common_type(c: Call, *names: str) -> ElementType:
    """Return the type in which the named arguments meet."""
    ranked: list[ElementType | None] = [None, None, None]
    for name in names:
        if c.is_tensor(name):
            value = c.input(name)
            place = 0 if value.rank else 1
            ranked[place] = _joined(ranked[place], value.type)
        else:
            ranked[2] = _joined(ranked[2], _of_number(c.attribute(name)))
    total: ElementType | None = None
    for kind in ranked:
        if kind is not None and (total is None or _kind(kind) > _kind(total)):
            total = kind
    assert total is not None
    return total


def _of_number(number: object) -> ElementType:
    if isinstance(number, bool):
        return ElementType.BOOL
    return ElementType.INT64 if isinstance(number, int) else ElementType.FLOAT32
