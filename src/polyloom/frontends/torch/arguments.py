"""Where calls of PyTorch's operations have what the core operations take."""

from __future__ import annotations

from polyloom.frontends.graph.composites.losses import REDUCTIONS
from polyloom.frontends.graph.core import ElementType, From, flag, value


def operand(name: str, kind: ElementType | None = None, default: float | None = None) -> From:
    """Return a tensor or a number in a type, without one in that of the result."""
    return From(lambda c: c.operand(name, kind or c.type, default))


SELF, OTHER, DY = operand("self"), operand("other"), value("grad_output")

TYPE = From(lambda c: c.type)
"""The type of the result."""

AXES = From(lambda c: c.axes("dim", c.input().rank if c.is_tensor("self") else 0))
"""The axes of ``dim``, or all."""

KEEP = flag("keepdim")

REDUCTION = From(lambda c: REDUCTIONS[c.integer("reduction", 1)])
"""What is made of the losses of all elements."""
