"""GridSample, AffineGrid, RoiAlign: elements at positions between elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyloom.frontends.graph.core import (
    Boxes,
    Context,
    Expression,
    Refused,
    Table,
    Value,
    affine_grid,
    boxes_averaged,
    cast,
    check_constant,
    filled,
    gathered,
    mapped,
    only,
    refuse_if,
    sampled,
    scalar,
    selected,
)

_OLD_MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""What the modes were called before opset 20."""


def _grid_sample(c: Context) -> Sequence[Value]:
    x, corners = c.input(0), bool(c.integer("align_corners", 0))
    mode, padding = c.text("mode", "linear"), c.text("padding_mode", "zeros")
    grid = cast(c.b, c.input(1), x.type)
    return only(sampled(c.b, x, grid, _OLD_MODES.get(mode, mode), padding, corners=corners))


def _affine_grid(c: Context) -> Sequence[Value]:
    shape = c.integers(1, "its size")
    check_constant(shape, 8)
    return only(affine_grid(c.b, c.input(0), shape, corners=bool(c.integer("align_corners", 0))))


def _roi_align(c: Context) -> Sequence[Value]:
    """RoiAlign: means of points in parts of boxes ``[x1, y1, x2, y2]``."""
    b, x, boxes = c.b, c.input(0), c.input(1)
    refuse_if(c.text("mode", "avg") != "avg", "the largest of its points")
    refuse_if(
        x.rank != 4 or boxes.rank != 2 or boxes.shape[1] != 4,
        f"boxes of shape {list(boxes.shape)} of data of shape {list(x.shape)}",
    )
    parts = [c.integer(f"output_{name}", 1) for name in ("height", "width")]
    found = [_boxes(c, boxes, 1 - k, parts[k]) for k in range(2)]
    return only(boxes_averaged(b, gathered(b, x, c.input(2)), found, parts))


def _boxes(c: Context, boxes: Value, column: int, parts: int) -> Boxes:
    b, scale = c.b, c.number("spatial_scale", 1.0)
    half = c.version >= 16 and c.text("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    low, high = selected(boxes, 1, column), selected(boxes, 1, column + 2)

    def length(v: Expression, w: Expression) -> Expression:
        found = scalar.multiply(scalar.subtract(w, v), scale)
        return found if half else scalar.maximum(found, 1)

    starts, lengths = (
        mapped(
            b, lambda v: scalar.subtract(scalar.multiply(v, scale), 0.5 if half else 0.0), low, hint="starts"
        ),
        mapped(b, length, low, high, hint="lengths"),
    )
    return Boxes(starts, lengths, *_points(c, lengths, parts))


def _points(c: Context, lengths: Value, parts: int) -> tuple[Value, int]:
    """Return how many points a part of each box has along an axis, and the largest number."""
    count = c.integer("sampling_ratio", 0)
    if count > 0:
        check_constant([count], 8)
        return filled(c.b, lengths.shape, count, lengths.type), count
    known = c.b.known(lengths)
    if known is None:
        raise Refused("a number of points that depends on boxes computed when the model runs")
    points = np.maximum(np.ceil(known / parts), 1)
    check_constant([int(points.max(initial=1))], 8)
    return c.b.constant(points.astype(known.dtype)), int(points.max(initial=1))


OPERATIONS: Table = {"GridSample": _grid_sample, "AffineGrid": _affine_grid, "RoiAlign": _roi_align}
