"""Operations along an axis of a tensor without axes, which PyTorch takes for one of one element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyloom.frontends.graph.core import ElementType, Value, filled, reshaped, unsqueezed
from polyloom.frontends.torch.call import Call, Lowering


def itself(c: Call) -> Sequence[Value]:
    """Return a scalar as what an operation picks of it, and its position."""
    return c.input(), filled(c.b, (), 0, ElementType.INT64)


def scalars_stay(lowering: Lowering) -> Lowering:
    """Return an operation that gives elements of an axis and their positions, for scalars too."""
    return lambda c: (lowering if c.input().rank else itself)(c)


def scalars_as_rows(lowering: Lowering) -> Lowering:
    """Return an operation along an axis that takes a scalar ``self`` for a row of one element."""

    def lowered(c: Call) -> Sequence[Value]:
        if c.input().rank:
            return lowering(c)
        values = tuple(unsqueezed(v, [0]) if isinstance(v, Value) and v.rank == 0 else v for v in c.values)
        return [reshaped(c.b, v, ()) for v in lowering(replace(c, values=values))]

    return lowered
