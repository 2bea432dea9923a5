"""Upsampling: by the nearest element, and linear along each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.context import only
from polyloom.frontends.graph.operations.contraction import einsum
from polyloom.frontends.graph.operations.movement import taken
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value
from polyloom.frontends.torch.call import Call, operations

NDArray = npt.NDArray[Any]


def _operand(c: Call) -> Value:
    return c.tensor("input" if "input" in c.arguments else "self")


def _sizes(c: Call, x: Value) -> list[tuple[int, float]]:
    """Return for each axis its new size, and by how much of an element its positions move on.

    A factor that is given counts, and not the quotient of the sizes, which may be another.
    """
    rank = x.rank - 2
    names = (
        ["scales"] if rank == 1 and "scales" in c.arguments else ["scales_d", "scales_h", "scales_w"][-rank:]
    )
    factors = tuple(c.argument("scale_factors") or [c.argument(n) for n in names])
    if c.given("output_size"):
        shape = c.integers("output_size")
    else:
        shape = tuple(int(n * f) for n, f in zip(x.shape[2:], factors, strict=True))
    if len(shape) != rank or len(factors) != rank or min(shape) < 1:
        raise Refused(f"{len(shape)} sizes of {rank} axes")
    pairs = zip(shape, factors, x.shape[2:], strict=True)
    return [(new, 1 / factor if factor else old / new) for new, factor, old in pairs]


def _nearest(c: Call) -> Sequence[Value]:
    """Element ``i`` of the result is ``floor(i * scale)``, computed in float32 as PyTorch does."""
    x = _operand(c)
    for k, (new, scale) in enumerate(_sizes(c, x)):
        places = np.floor(np.arange(new, dtype=np.float32) * np.float32(scale)).astype(int)
        x = taken(c.b, x, 2 + k, [min(int(p), x.shape[2 + k] - 1) for p in places])
    return only(x)


def _linear(c: Call) -> Sequence[Value]:
    """A product with a constant matrix along each axis: two weights in each row."""
    x = _operand(c)
    labels = "ncabd"[: x.rank]
    sizes = _sizes(c, x)
    for k, (new, scale) in enumerate(sizes):
        weights = _weights(x.shape[2 + k], new, scale, corners=c.flag("align_corners"))
        matrix = c.b.constant(weights.astype(x.type.dtype))
        own = labels[2 + k]
        hint = "" if k == len(sizes) - 1 else f"axis{k}"
        x = einsum(c.b, [labels, f"o{own}"], labels.replace(own, "o"), [x, matrix], hint=hint)
    return only(x)


def _weights(old: int, new: int, scale: float, *, corners: bool) -> NDArray:
    places = np.arange(new)
    if corners:
        source = places * ((old - 1) / (new - 1) if new > 1 else 0)
    else:
        source = np.maximum((places + 0.5) * scale - 0.5, 0)
    low = np.minimum(source.astype(int), old - 1)
    share = np.clip(source - low, 0, 1)
    found = np.zeros((new, old))
    np.add.at(found, (places, low), 1 - share)
    np.add.at(found, (places, np.minimum(low + 1, old - 1)), share)
    return found


OPERATIONS = operations(
    {
        **{f"upsample_nearest{n}d": _nearest for n in (1, 2, 3)},
        "upsample_linear1d": _linear,
        "upsample_bilinear2d": _linear,
        "upsample_trilinear3d": _linear,
    }
)
