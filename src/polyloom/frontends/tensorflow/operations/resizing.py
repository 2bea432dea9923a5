"""Resizing of images ``[n][h][w][c]`` and its gradients: a product with a constant matrix along each axis.

Positions and weights: tensorflow/core/kernels/image/resize_*.cc; positions are computed in float32 as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.core import (
    Context,
    ElementType,
    Table,
    Value,
    along,
    cast,
    check_constant,
    cubic_weight,
    only,
    refuse_if,
    taken,
)

NDArray = npt.NDArray[Any]
Weights = Callable[[Context, int, int], NDArray]
"""The matrix ``[new][old]`` of an axis, from its two lengths."""

_STEPS = 1024
"""TensorFlow's cubic weights are those of the nearest of so many positions between two elements."""


def _scale(c: Context, old: int, new: int) -> np.float32:
    corners = bool(c.attribute("align_corners", False)) and new > 1
    return np.float32(old - 1) / np.float32(new - 1) if corners else np.float32(old) / np.float32(new)


def _positions(c: Context, old: int, new: int) -> NDArray:
    """Return where the elements of the result lie in the data, before they are cut off."""
    places, scale = np.arange(new, dtype=np.float32), _scale(c, old, new)
    half = bool(c.attribute("half_pixel_centers", False))
    return (places + np.float32(0.5)) * scale - np.float32(0.5) if half else places * scale


def _rows(columns: Sequence[NDArray], weights: Sequence[NDArray], old: int) -> NDArray:
    """Return the matrix with these weights at these columns, cut off at the border."""
    found = np.zeros((len(columns[0]), old))
    for at, weight in zip(columns, weights, strict=True):
        np.add.at(found, (np.arange(len(at)), np.clip(at, 0, old - 1)), weight)
    return found


def _linear(c: Context, old: int, new: int) -> NDArray:
    source = _positions(c, old, new)
    low = np.floor(source).astype(int)
    share = source - np.floor(source)
    return _rows([low, low + 1], [1 - share, share], old)


def _cubic(c: Context, old: int, new: int) -> NDArray:
    """With ``half_pixel_centers`` by Keys' weights, those outside left out; else by others, cut off."""
    keys = bool(c.attribute("half_pixel_centers", False))
    source = _positions(c, old, new)
    low = np.floor(source).astype(int)
    share = np.rint((source - np.floor(source)) * _STEPS) / _STEPS
    columns = [low + k for k in range(-1, 3)]
    weights = [cubic_weight(share - k, -0.5 if keys else -0.75) for k in range(-1, 3)]
    if keys:
        weights = [np.where((at >= 0) & (at < old), w, 0) for at, w in zip(columns, weights, strict=True)]
        total = np.sum(weights, axis=0)
        weights = [w / total for w in weights]
    return _rows(columns, weights, old)


def _area(c: Context, old: int, new: int) -> NDArray:
    """The mean over the part of the data that an element of the result stands for."""
    scale = float(_scale(c, old, new))
    start = np.arange(new)[:, None] * scale
    places = np.arange(int(np.ceil(start.max() + scale)))[None, :]
    shares = np.clip(np.minimum(places + 1, start + scale) - np.maximum(places, start), 0, None) / scale
    found = np.zeros((new, old))
    for k in range(places.size):
        found[:, min(k, old - 1)] += shares[:, k]
    return found


def _nearest_positions(c: Context, old: int, new: int) -> NDArray:
    scale = _scale(c, old, new)
    places = np.arange(new, dtype=np.float32)
    if c.attribute("half_pixel_centers", False):
        found = np.floor((places + np.float32(0.5)) * scale)
    elif c.attribute("align_corners", False):
        found = np.floor(places * scale + np.float32(0.5))
    else:
        found = np.floor(places * scale)
    inside: NDArray = np.clip(found.astype(int), 0, old - 1)
    return inside


def _nearest(c: Context, old: int, new: int) -> NDArray:
    return _rows([_nearest_positions(c, old, new)], [np.ones(new)], old)


def _sizes(c: Context, position: int = 1) -> list[int]:
    found = c.integers(position, "its size")
    refuse_if(len(found) != 2 or min(found) < 1, f"the size {found} of an image")
    return found


def _image(c: Context) -> Value:
    x = c.input()
    refuse_if(x.rank != 4 or 0 in x.shape, f"an image of shape {list(x.shape)}")
    return x


def _resized(c: Context, weights: Weights) -> Sequence[Value]:
    """Resize an image to input 1; the result is float32."""
    x = _image(c)
    wide = cast(c.b, x, ElementType.FLOAT32, "wide")
    for k, size in enumerate(_sizes(c), start=1):
        check_constant([size, x.shape[k]], 8)
        if not _is_identity(matrix := weights(c, x.shape[k], size)):
            wide = along(c.b, wide, k, matrix)
    return only(wide)


def _is_identity(matrix: NDArray) -> bool:
    return matrix.shape[0] == matrix.shape[1] and bool((matrix == np.eye(len(matrix))).all())


def _resized_nearest(c: Context) -> Sequence[Value]:
    x = _image(c)
    for k, size in enumerate(_sizes(c), start=1):
        check_constant([size], 8)
        x = taken(c.b, x, k, [int(p) for p in _nearest_positions(c, x.shape[k], size)])
    return only(x)


def _gradient(c: Context, weights: Weights, shape: Callable[[Context], Sequence[int]]) -> Sequence[Value]:
    """The gradient: the product with the transposed matrices."""
    dy = _image(c)
    for k, size in enumerate(shape(c), start=1):
        check_constant([size, dy.shape[k]], 8)
        if not _is_identity(matrix := weights(c, size, dy.shape[k])):
            dy = along(c.b, dy, k, matrix.T)
    return only(dy)


OPERATIONS: Table = {
    "ResizeBilinear": partial(_resized, weights=_linear),
    "ResizeBilinearGrad": partial(_gradient, weights=_linear, shape=lambda c: c.input(1).shape[1:3]),
    "ResizeBicubic": partial(_resized, weights=_cubic),
    "ResizeBicubicGrad": partial(_gradient, weights=_cubic, shape=lambda c: c.input(1).shape[1:3]),
    "ResizeArea": partial(_resized, weights=_area),
    "ResizeNearestNeighbor": _resized_nearest,
    "ResizeNearestNeighborGrad": partial(_gradient, weights=_nearest, shape=_sizes),
}
