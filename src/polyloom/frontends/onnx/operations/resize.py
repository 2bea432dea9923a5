"""Resize and Upsample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.core import (
    Axis,
    Context,
    Method,
    Refused,
    Table,
    Value,
    axis,
    only,
    refuse_if,
    resized,
)

NDArray = npt.NDArray[Any]


def _resize(c: Context) -> Sequence[Value]:
    x = c.input()
    if c.version < 11:
        return only(_legacy(c, x, c.known(1, "its scales")))
    method = Method(
        c.text("mode", "nearest"),
        c.text("coordinate_transformation_mode", "half_pixel"),
        c.text("nearest_mode", "round_prefer_floor"),
        c.number("cubic_coeff_a", -0.75),
        bool(c.integer("antialias", 0)),
        bool(c.integer("exclude_outside", 0)),
    )
    named = c.numbers("axes", tuple(range(x.rank)))
    order = [axis(a, x.rank) for a in named]
    roi, scales, sizes = (
        c.known_or(k, what) for k, what in ((1, "its part"), (2, "its scales"), (3, "its sizes"))
    )
    found = _axes(c, x, order, scales, sizes)
    if roi is not None and roi.size == 2 * len(order):
        count = len(order)
        parts = [(float(roi[n]), float(roi[n + count])) for n in range(count)]
        found = {k: _with_part(found[k], part) for k, part in zip(order, parts, strict=True)}
    return only(resized(c.b, x, found, method, c.number("extrapolation_value", 0.0)))


def _with_part(one: Axis, part: tuple[float, float]) -> Axis:
    return Axis(one.size, one.wanted, one.scale, part)


def _axes(
    c: Context, x: Value, order: Sequence[int], scales: NDArray | None, sizes: NDArray | None
) -> dict[int, Axis]:
    if sizes is not None and sizes.size == len(order):
        wanted = [int(n) for n in sizes]
        ratios = [n / x.shape[k] for n, k in zip(wanted, order, strict=True)]
        policy = c.text("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            ratios = [ratio] * len(order)
            wanted = [int(ratio * x.shape[k] + 0.5) for k in order]
    elif scales is not None and scales.size == len(order):
        ratios = [float(s) for s in scales]
        refuse_if(not all(0 < r < float("inf") for r in ratios), f"scales {ratios}")
        wanted = [int(s * x.shape[k]) for s, k in zip(ratios, order, strict=True)]
    else:
        raise Refused("neither scales nor sizes")
    refuse_if(min(wanted, default=1) < 1, f"sizes {wanted}")
    return {k: Axis(x.shape[k], n, r) for k, n, r in zip(order, wanted, ratios, strict=True)}


def _legacy(c: Context, x: Value, scales: NDArray) -> Value:
    """Resize of opset 10 and Upsample: from the corner, rounded down."""
    refuse_if(scales.size != x.rank, f"{scales.size} scales of {x.rank} axes")
    ratios = [float(s) for s in scales.reshape(-1)]
    found = {k: Axis(n, int(n * r), r) for k, (n, r) in enumerate(zip(x.shape, ratios, strict=True))}
    mode = c.text("mode", "nearest")
    return resized(c.b, x, found, Method(mode, "asymmetric", "floor"))


def _upsample(c: Context) -> Sequence[Value]:
    stated = np.asarray(c.attribute("scales", ()), np.float64)
    return only(_legacy(c, c.input(), c.known(1, "its scales") if c.version >= 9 else stated))


OPERATIONS: Table = {"Resize": _resize, "Upsample": _upsample}
