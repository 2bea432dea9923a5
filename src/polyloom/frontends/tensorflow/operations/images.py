"""Images scaled with a kernel, cropped, and with another contrast.

Source: tensorflow/core/kernels/image/scale_and_translate_op.cc, crop_and_resize_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, floor

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.core import (
    Combine,
    Context,
    ElementType,
    Table,
    Value,
    along,
    cast,
    check_constant,
    check_places,
    corners_sampled,
    corners_scattered,
    cubic_weight,
    gathered,
    mapped,
    mean,
    only,
    refuse_if,
    rows_combined,
    scalar,
    selected,
    transposed,
)

Floats = npt.NDArray[np.float64]


def _lanczos(radius: int) -> Callable[[Floats], Floats]:
    return lambda x: np.where(np.abs(x) < radius, np.sinc(x) * np.sinc(x / radius), 0.0)


_KERNELS: dict[str, tuple[float, Callable[[Floats], Floats]]] = {
    "lanczos1": (1, _lanczos(1)),
    "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
    "gaussian": (1.5, lambda x: np.where(np.abs(x) < 1.5, np.exp(-2 * x * x), 0.0)),
    "box": (0.5, lambda x: np.where(np.abs(x) < 0.5, 1.0, np.where(np.abs(x) == 0.5, 0.5, 0.0))),
    "triangle": (1, lambda x: np.clip(1 - np.abs(x), 0, None)),
    "keyscubic": (2, lambda x: cubic_weight(x, -0.5)),
    "mitchellcubic": (2, lambda x: _mitchell(np.abs(x))),
}
"""How far each kernel reaches, and the weight of an element at a distance."""


def _mitchell(x: Floats) -> Floats:
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _weights(c: Context, old: int, new: int, scale: float, shift: float) -> Floats:
    """Return the matrix ``[new][old]`` of an axis: normalised weights around ``(place - shift) / scale``."""
    name = c.text("kernel_type", "lanczos3")
    refuse_if(name not in _KERNELS or scale <= 0, f"the kernel `{name}` with the scale {scale}")
    check_places(new)
    check_constant([new, old], 8)
    reach, kernel = _KERNELS[name]
    wide = max(1 / scale, 1.0) if c.attribute("antialias", True) else 1.0
    found = np.zeros((new, old))
    for place in range(new):
        at = (place + 0.5 - shift) / scale
        if not 0 <= at <= old:
            continue
        first = min(max(ceil(at - reach * wide - 0.5), 0), old - 1)
        last = min(max(floor(at + reach * wide - 0.5), 0), old - 1)
        seen = np.arange(first, last + 1)
        distances = ((seen + 0.5 - at) / wide).astype(np.float64)
        row = kernel(distances)
        if abs(row.sum()) > 1000 * np.finfo(np.float32).tiny:
            found[place, seen] = row / row.sum()
    return found


def _scaled(c: Context, *, gradient: bool) -> Sequence[Value]:
    """ScaleAndTranslate(x, size, scale, shift), ScaleAndTranslateGrad(dy, x, scale, shift)."""
    x = cast(c.b, c.input(), ElementType.FLOAT32, "wide")
    refuse_if(x.rank != 4, f"an image of rank {x.rank}")
    sizes = c.input(1).shape[1:3] if gradient else c.integers(1, "its size")
    scales, shifts = (c.known(k, "its scale").reshape(-1).tolist() for k in (2, 3))
    refuse_if(
        not len(sizes) == len(scales) == len(shifts) == 2,
        f"{len(sizes)} sizes, {len(scales)} scales and {len(shifts)} shifts of an image",
    )
    for k in range(2):
        old, new = (sizes[k], x.shape[1 + k]) if gradient else (x.shape[1 + k], sizes[k])
        matrix = _weights(c, old, new, scales[k], shifts[k])
        x = along(c.b, x, 1 + k, matrix.T if gradient else matrix)
    return only(x)


def _crop(c: Context) -> Sequence[Value]:
    """CropAndResize(x, boxes, numbers of images, size): bilinear between the corners of each box."""
    b, x, boxes = c.b, cast(c.b, c.input(), ElementType.FLOAT32, "wide"), c.input(1)
    sizes = c.integers(3, "its size")
    refuse_if(
        c.text("method", "bilinear") != "bilinear" or c.number("extrapolation_value", 0.0) != 0,
        "other than bilinear crops with 0 outside",
    )
    refuse_if(
        x.rank != 4 or boxes.rank != 2 or boxes.shape[1] != 4 or len(sizes) != 2 or min(sizes) < 1,
        f"boxes of shape {list(boxes.shape)} of an image of shape {list(x.shape)}",
    )
    check_constant([boxes.shape[0], *sizes, x.shape[3]], 4)
    images = transposed(gathered(b, x, c.input(2)), (0, 3, 1, 2))
    corners = [(selected(boxes, 1, k), selected(boxes, 1, k + 2)) for k in range(2)]
    return only(transposed(corners_sampled(b, images, corners, sizes), (0, 2, 3, 1)))


def _crop_gradient(c: Context) -> Sequence[Value]:
    """CropAndResizeGradImage(dy, boxes, numbers of images, shape): what the boxes of an image give, added."""
    b, dy, boxes, shape = c.b, c.input(0), c.input(1), c.integers(3, "its shape")
    refuse_if(
        dy.rank != 4 or boxes.rank != 2 or boxes.shape[1] != 4 or len(shape) != 4,
        f"gradients of shape {list(dy.shape)} of an image of shape {shape}",
    )
    refuse_if(c.text("method", "bilinear") != "bilinear", "other than bilinear crops")
    check_constant(shape, 4)
    corners = [(selected(boxes, 1, k), selected(boxes, 1, k + 2)) for k in range(2)]
    found = corners_scattered(b, transposed(dy, (0, 3, 1, 2)), corners, shape[1:3])
    images = rows_combined(b, found, c.input(2), shape[0], Combine.ADD)
    return only(transposed(images, (0, 2, 3, 1)))


def _contrast(c: Context) -> Sequence[Value]:
    """AdjustContrastv2(x, factor): the distance of each channel from its mean, times the factor."""
    b, x, factor = c.b, c.input(0), c.input(1)
    refuse_if(x.rank < 3, f"an image of rank {x.rank}")
    middle = mean(b, x, [x.rank - 3, x.rank - 2])
    return only(
        mapped(
            b,
            lambda v, m, f: scalar.add(scalar.multiply(scalar.subtract(v, m), f), m),
            x,
            middle,
            cast(b, factor, x.type),
        )
    )


OPERATIONS: Table = {
    "ScaleAndTranslate": partial(_scaled, gradient=False),
    "ScaleAndTranslateGrad": partial(_scaled, gradient=True),
    "CropAndResize": _crop,
    "CropAndResizeGradImage": _crop_gradient,
    "AdjustContrastv2": _contrast,
}
