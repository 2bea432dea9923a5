"""Resizing: positions or weights are known at import, an axis is a gathering or a product with a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.basis import (
    Builder,
    CompareOp,
    Expression,
    Function,
    Refused,
    Value,
    check_constant,
    is_nan,
    refuse_if,
    scalar,
    unsqueezed,
)
from polyloom.frontends.graph.operations.contraction import einsum
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.operations.movement import pad_positions, taken

NDArray = npt.NDArray[Any]


MOST_PLACES = 2**20
"""Elements of a resized axis at most: where each lies is worked out one by one."""


def check_places(count: int) -> None:
    """Raise ``Refused`` for an axis of more than ``MOST_PLACES`` elements."""
    refuse_if(count > MOST_PLACES, f"an axis resized to {count} elements; more than {MOST_PLACES} are not")


@dataclass(frozen=True)
class Axis:
    """One axis: its size, the size wanted, the scale, and the part of it that is resized (0 to 1)."""

    size: int
    wanted: int
    scale: float
    part: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Method:
    """How positions are found and what is between them."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    positions: type[np.floating[Any]] = np.float32


def position(place: int, axis: Axis, coordinates: str, kind: type[np.floating[Any]] = np.float32) -> float:
    """Return where an element of the result lies in the data.

    It is computed in float32, as onnxruntime does for all types, PyTorch for all but float64: what lies on an
    element, or between two, depends on it.
    """
    scale, half = kind(axis.scale), kind(0.5)
    at = kind(place)
    match coordinates:
        case "half_pixel":
            return float((at + half) / scale - half)
        case "torch_half_pixel":
            return float(kind(1 / axis.scale) * (at + half) - half)
        case "torch_align_corners":
            return float(at * (kind(axis.size - 1) / kind(axis.wanted - 1))) if axis.wanted > 1 else 0.0
        case "asymmetric":
            return float(at / scale)
        case "align_corners":
            width = axis.scale * axis.size
            return place * (axis.size - 1) / (width - 1) if width != 1 else 0.0
        case "pytorch_half_pixel":
            return float((at + half) / scale - half) if axis.wanted > 1 else 0.0
        case "half_pixel_symmetric":
            adjust = kind(axis.wanted) / (scale * kind(axis.size))
            centre = kind(axis.size) * half
            return float(centre * (1 - adjust) + (at + half) / scale - half)
        case "tf_crop_and_resize":
            low, high = axis.part
            if axis.wanted == 1:
                return (low + 0.5 * (high - low)) * (axis.size - 1)
            return low * (axis.size - 1) + place * (high - low) * (axis.size - 1) / (axis.wanted - 1)
        case _:
            raise Refused(f"the coordinates `{coordinates}`")


def nearest_position(x: float, axis: Axis, rule: str) -> int:
    """Return the element that stands for a position, inside the data."""
    below = floor(x)
    match rule:
        case "round_prefer_floor":
            found = below if x - below <= 0.5 else below + 1
        case "round_prefer_ceil":
            found = below if x - below < 0.5 else below + 1
        case "floor":
            found = below
        case "ceil":
            found = ceil(x)
        case _:
            raise Refused(f"the rounding `{rule}`")
    return min(max(found, 0), axis.size - 1)


def _triangle(x: NDArray) -> NDArray:
    found: NDArray = np.clip(1 - np.abs(x), 0, None)
    return found


def cubic_weight(x: NDArray, a: float) -> NDArray:
    """Return the weight of an element at a distance: Keys' cubic."""
    x = np.abs(x)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def weights(axis: Axis, method: Method) -> NDArray:
    """Return the matrix ``[wanted][size]`` of an axis; rows of positions outside (cropping) are NaN."""
    check_places(axis.wanted)
    check_constant([axis.wanted, axis.size], 8)
    found = np.zeros((axis.wanted, axis.size))
    for place in range(axis.wanted):
        x = position(place, axis, method.coordinates, method.positions)
        if method.coordinates == "tf_crop_and_resize" and not 0 <= x <= axis.size - 1:
            found[place] = np.nan
            continue
        _add_row(found[place], x, axis, method)
    return found


def looked_at(axis: Axis, method: Method) -> NDArray:
    """Tell which elements each element of the result is computed of, ``[wanted][size]``.

    Those with the weight 0 among them: NaN and infinities there make it NaN.
    """
    found = np.zeros((axis.wanted, axis.size), np.bool_)
    before, after = (0, 1) if method.mode == "linear" else (1, 2)
    for place in range(axis.wanted):
        x = position(place, axis, method.coordinates, method.positions)
        middle = floor(max(x, 0) if method.mode == "linear" else x)
        reach = np.arange(middle - before, middle + after + 1)
        if method.exclude_outside:
            reach = reach[(reach >= 0) & (reach < axis.size)]
        found[place, np.clip(reach, 0, axis.size - 1)] = True
    return found


def _add_row(row: NDArray, x: float, axis: Axis, method: Method) -> None:
    shrink = min(axis.scale, 1.0) if method.antialias else 1.0
    reach = (1 if method.mode == "linear" else 2) / shrink
    places = np.arange(floor(x - reach), ceil(x + reach) + 1)
    distances = (places - x) * shrink
    values = _triangle(distances) if method.mode == "linear" else cubic_weight(distances, method.cubic)
    if method.exclude_outside:
        values = np.where((places >= 0) & (places < axis.size), values, 0.0)
    if method.exclude_outside or method.antialias:
        values = values / values.sum()
    np.add.at(row, np.clip(places, 0, axis.size - 1), values)


def resized(b: Builder, x: Value, axes: dict[int, Axis], method: Method, outside: float = 0.0) -> Value:
    """Return the value resized along axes, one after another."""
    beyond: list[tuple[int, NDArray]] = []
    for k, one in axes.items():
        cropped = method.coordinates == "tf_crop_and_resize"
        if one.wanted == one.size and one.scale == 1.0 and not cropped:
            continue
        if method.mode == "nearest":
            check_places(one.wanted)
            places = [position(p, one, method.coordinates) for p in range(one.wanted)]
            inside = np.asarray([not cropped or 0 <= p <= one.size - 1 for p in places])
            x = taken(b, x, k, [nearest_position(p, one, method.nearest) for p in places])
        elif method.mode in ("linear", "cubic"):
            matrix = weights(one, method)
            inside = np.asarray(~np.isnan(matrix).any(axis=1))
            x = along(
                b, x, k, np.nan_to_num(matrix), looked=None if method.antialias else looked_at(one, method)
            )
        else:
            raise Refused(f"the mode `{method.mode}`")
        if not inside.all():
            beyond.append((k, inside))
    for k, inside in beyond:
        x = _extrapolated(b, x, k, inside, outside)
    return x


def along(
    b: Builder, x: Value, k: int, matrix: NDArray, hint: str = "resized", looked: NDArray | None = None
) -> Value:
    """Return the product of an axis with a constant matrix ``[wanted][size]``. Raises ``Refused``.

    Elements with the weight 0 are not looked at, so that infinities and NaN stay where they are, but those of
    ``looked`` are: then the weight of all others is NaN.
    """
    function: Function = _weighted
    if looked is not None and (looked & (matrix == 0)).any():
        matrix, function = np.where(looked | (matrix != 0), matrix, np.nan), _weighted_if_number
    labels = "".join(chr(ord("A") + n) for n in range(x.rank))
    kind = x.type
    refuse_if(not kind.is_float, f"interpolation of {kind.value}")
    constant = b.constant(matrix.astype(kind.dtype))
    output = labels.replace(labels[k], "z")
    return einsum(b, [labels, f"z{labels[k]}"], output, [x, constant], function, hint)


def _weighted(x: Expression, weight: Expression) -> Expression:
    return scalar.select(scalar.compare(CompareOp.EQ, weight, 0), 0, scalar.multiply(x, weight))


def _weighted_if_number(x: Expression, weight: Expression) -> Expression:
    return scalar.select(is_nan(weight), 0, scalar.multiply(x, weight))


def padding_gradient(b: Builder, dy: Value, before: Sequence[int], after: Sequence[int], mode: str) -> Value:
    """Return the gradient of ``padded_by_mode``: what each element was copied to, summed along each axis."""
    for k, (low, high) in enumerate(zip(before, after, strict=True)):
        if low or high:
            size = dy.shape[k] - low - high
            matrix = np.zeros((size, dy.shape[k]))
            matrix[pad_positions(size, low, high, mode), range(dy.shape[k])] = 1
            dy = along(b, dy, k, matrix)
    return dy


def _extrapolated(b: Builder, x: Value, k: int, inside: NDArray, outside: float) -> Value:
    mask = unsqueezed(b.constant(inside), [n for n in range(x.rank) if n != k])
    return mapped(b, lambda m, v: scalar.select(m, v, outside), mask, x, hint="cropped")
