"""Upsampling, by the nearest element, linear or cubic along each axis; elements at a grid of positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np

from polyloom.frontends.graph.core import (
    Axis,
    ElementType,
    Method,
    Value,
    affine_grid,
    along,
    check_constant,
    check_places,
    looked_at,
    only,
    refuse_if,
    sampled,
    taken,
    weights,
)
from polyloom.frontends.torch.call import Call, operations


def _operand(c: Call) -> Value:
    return c.input("input" if "input" in c.arguments else "self")


def _sizes(c: Call, x: Value) -> list[tuple[int, float]]:
    """Return for each axis its new size, and by how much of an element its positions move on.

    A factor that is given counts, and not the quotient of the sizes, which may be another.
    """
    rank = x.rank - 2
    names = (
        ["scales"] if rank == 1 and "scales" in c.arguments else ["scales_d", "scales_h", "scales_w"][-rank:]
    )
    factors = tuple(c.attribute("scale_factors") or [c.attribute(n) for n in names])
    if c.given("output_size"):
        shape = c.numbers("output_size")
    else:
        shape = tuple(int(n * f) for n, f in zip(x.shape[2:], factors, strict=True))
    refuse_if(
        len(shape) != rank or len(factors) != rank or min(shape) < 1, f"{len(shape)} sizes of {rank} axes"
    )
    pairs = zip(shape, factors, x.shape[2:], strict=True)
    return [(new, 1 / factor if factor else old / new) for new, factor, old in pairs]


def _nearest(c: Call, half: float) -> Sequence[Value]:
    """Element ``i`` of the result is ``floor((i + half) * scale)``, computed in float32 as PyTorch does."""
    x = _operand(c)
    for k, (new, scale) in enumerate(_sizes(c, x)):
        check_places(new)
        at = (np.arange(new, dtype=np.float32) + np.float32(half)) * np.float32(scale)
        x = taken(c.b, x, 2 + k, [min(int(p), x.shape[2 + k] - 1) for p in np.floor(at)])
    return only(x)


def _weighted(c: Call, method: Method) -> Sequence[Value]:
    """Multiply each axis with a constant matrix."""
    x, corners = _operand(c), c.flag("align_corners")
    kind = np.float64 if x.type is ElementType.FLOAT64 else np.float32
    coordinates = "torch_align_corners" if corners else "torch_half_pixel"
    way = replace(method, coordinates="half_pixel" if method.antialias else coordinates, positions=kind)
    sizes = _sizes(c, x)
    for k, (new, scale) in enumerate(sizes):
        old = x.shape[2 + k]
        axis = Axis(old, new, _between_corners(old, new) if corners and method.antialias else 1 / scale)
        looked = None if method.antialias or old == new else looked_at(axis, way)
        x = along(c.b, x, 2 + k, weights(axis, way), "" if k == len(sizes) - 1 else f"axis{k}", looked)
    return only(x)


def _between_corners(old: int, new: int) -> float:
    """Return the factor that PyTorch takes from corner to corner; with antialiasing positions are as ever."""
    return (new - 1) / (old - 1) if old > 1 and new > 1 else inf


_MODES, _PADDINGS = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection")
"""By their numbers."""


def _grid_sampled(c: Call) -> Sequence[Value]:
    mode, padding = c.integer("interpolation_mode", 0), c.integer("padding_mode", 0)
    refuse_if(
        not (0 <= mode < len(_MODES) and 0 <= padding < len(_PADDINGS)), f"mode {mode} with padding {padding}"
    )
    x, grid, corners = c.input("input"), c.input("grid"), c.flag("align_corners")
    return only(sampled(c.b, x, grid, _MODES[mode], _PADDINGS[padding], corners=corners))


def _affine_grid(c: Call) -> Sequence[Value]:
    shape = c.numbers("size")
    check_constant(shape, 8)
    return only(affine_grid(c.b, c.input("theta"), shape, corners=c.flag("align_corners")))


_LINEAR, _CUBIC = Method("linear"), Method("cubic")
_ANTIALIAS = Method(cubic=-0.5, antialias=True, exclude_outside=True)

OPERATIONS = operations(
    {
        **{f"upsample_nearest{n}d": partial(_nearest, half=0) for n in (1, 2, 3)},
        **{f"_upsample_nearest_exact{n}d": partial(_nearest, half=0.5) for n in (1, 2, 3)},
        **dict.fromkeys(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), _grid_sampled),
        "affine_grid_generator": _affine_grid,
        "upsample_linear1d": partial(_weighted, method=_LINEAR),
        "upsample_bilinear2d": partial(_weighted, method=_LINEAR),
        "upsample_trilinear3d": partial(_weighted, method=_LINEAR),
        "upsample_bicubic2d": partial(_weighted, method=_CUBIC),
        "_upsample_bilinear2d_aa": partial(_weighted, method=replace(_ANTIALIAS, mode="linear")),
        "_upsample_bicubic2d_aa": partial(_weighted, method=replace(_ANTIALIAS, mode="cubic")),
    }
)
