"""Shapes, views, padding, concatenation, gathering. What is known at import is folded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.core import (
    Combine,
    Context,
    ElementType,
    From,
    Refused,
    Shape,
    Table,
    Term,
    Value,
    X,
    at,
    axes,
    axis,
    broadcast_shape,
    check_constant,
    concatenated,
    expanded,
    flipped,
    integers,
    iterators,
    masked,
    one,
    only,
    op,
    padded,
    padded_by_mode,
    padding_gradient,
    permuted,
    refuse_if,
    repeated,
    reshaped,
    reversed_sequences,
    rolled,
    selected,
    sliced,
    split,
    split_parts,
    squeezed,
    stacked,
    steps,
    transposed,
    triangle,
    unsqueezed,
    unstacked,
    value,
    view,
    with_rest,
)
from polyloom.frontends.tensorflow.operations.elementwise import element_type_of

NDArray = npt.NDArray[Any]


# -- shapes as constants


def _integers(c: Context, numbers: Sequence[int], name: str = "out_type") -> Value:
    kind = element_type_of(c, name, ElementType.INT32)
    return c.b.constant(np.asarray(numbers, kind.dtype).reshape(len(numbers)))


def _fill(c: Context) -> Sequence[Value]:
    shape = c.integers(0, "its shape")
    check_constant(shape, 0)
    return only(expanded(c.input(1), shape))


def _concat_offset(c: Context) -> Sequence[Value]:
    """Where each part begins in their concatenation."""
    at = c.whole(0, "its axis")
    shapes = [c.integers(k, "a shape") for k in range(1, len(c.values))]
    found, start = [], 0
    for shape in shapes:
        k = axis(at, len(shape))
        found.append(c.b.constant(np.asarray([start if j == k else 0 for j in range(len(shape))], np.int32)))
        start += shape[k]
    return found


def _stated_shapes(c: Context) -> list[Shape]:
    return [tuple(c.integers(k, "a shape")) for k in range(2)]


def _reduced_axes(c: Context) -> Sequence[Value]:
    """BroadcastGradientArgs: the axes along which each of two shapes was broadcast."""
    shapes = _stated_shapes(c)
    wide = broadcast_shape(shapes)
    full = [(1,) * (len(wide) - len(s)) + s for s in shapes]
    stretched = [[k for k, n in enumerate(f) if n == 1] for f in full]
    return [_integers(c, s, "T") for s in stretched]


def _difference(c: Context) -> Sequence[Value]:
    """ListDiff: the elements of one list that another has not, and their positions."""
    kept, left = c.known(0, "its list"), c.known(1, "its list")
    where = np.flatnonzero(~np.isin(kept, left))
    return c.b.constant(kept.reshape(-1)[where]), _integers(c, [int(n) for n in where], "out_idx")


# -- views


def _squeeze(c: Context) -> Sequence[Value]:
    x = c.input()
    named = c.numbers("squeeze_dims", ()) or [k for k, n in enumerate(x.shape) if n == 1]
    chosen_axes = axes(named, x.rank)
    refuse_if(
        any(x.shape[k] != 1 for k in chosen_axes),
        f"axes {chosen_axes} of the shape {list(x.shape)} are not all of size 1",
    )
    return only(squeezed(x, chosen_axes))


def _broadcast_to(c: Context) -> Sequence[Value]:
    x, shape = c.input(), tuple(c.integers(1, "its shape"))
    check_constant(shape, 0)
    refuse_if(broadcast_shape([x.shape, shape]) != shape, f"{list(x.shape)} as {list(shape)}")
    return only(expanded(x, shape))


def _reverse(c: Context) -> Sequence[Value]:
    x = c.input()
    for k in axes(c.integers(1, "its axes"), x.rank):
        x = flipped(x, k)
    return only(x)


def _roll(c: Context) -> Sequence[Value]:
    x = c.input()
    for shift, k in zip(c.integers(1, "its shifts"), c.integers(2, "its axes"), strict=False):
        x = rolled(c.b, x, axis(k, x.rank), shift)
    return only(x)


def _slice(c: Context) -> Sequence[Value]:
    x, starts, sizes = c.input(), c.integers(1, "its starts"), c.integers(2, "its sizes")
    refuse_if(not len(starts) == len(sizes) == x.rank, f"{len(starts)} starts of {x.rank} axes")
    for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        length = x.shape[k] - start if size == -1 else size
        refuse_if(
            start < 0 or length < 0 or start + length > x.shape[k],
            f"a slice from {start}, {length} long, of {x.shape[k]}",
        )
        x = sliced(x, k, start, 1, length)
    return only(x)


# -- strided slices, with TensorFlow's masks


class _Dense:
    """What a strided slice does with each axis of its operand, and the shape that it leaves.

    ``parts``: (axis, first position, step, length) of each axis; ``final``: for each axis of the result the
    axis that it is of, or None for a new one. An axis that a number chooses is in ``parts`` alone.
    """

    def __init__(self, c: Context, position: int, shape: Sequence[int]) -> None:
        begins, ends = c.integers(position, "its begins"), c.integers(position + 1, "its ends")
        steps = c.integers(position + 2, "its steps")
        refuse_if(not len(begins) == len(ends) == len(steps), "different numbers of begins, ends and steps")
        masks = {
            n: c.integer(f"{n}_mask", 0) for n in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
        }
        self.parts: list[tuple[int, int, int, int]] = []
        self.final: list[int | None] = []
        taken_axes = self._named(masks, len(begins))
        for k in range(len(begins)):
            if masks["ellipsis"] >> k & 1:
                for _ in range(len(shape) - taken_axes):
                    self._all(shape)
            elif masks["new_axis"] >> k & 1:
                self.final.append(None)
            else:
                self._part(shape, masks, k, begins[k], ends[k], steps[k])
        while len(self.parts) < len(shape):
            self._all(shape)

    @staticmethod
    def _named(masks: dict[str, int], count: int) -> int:
        """Return how many axes of the operand are named."""
        return sum(1 for k in range(count) if not (masks["ellipsis"] | masks["new_axis"]) >> k & 1)

    def _all(self, shape: Sequence[int]) -> None:
        at = len(self.parts)
        refuse_if(at >= len(shape), "a slice of more axes than there are")
        self.final.append(at)
        self.parts.append((at, 0, 1, shape[at]))

    def _part(
        self, shape: Sequence[int], masks: dict[str, int], k: int, begin: int, end: int, step: int
    ) -> None:
        at = len(self.parts)
        refuse_if(at >= len(shape), "a slice of more axes than there are")
        size = shape[at]
        if masks["shrink_axis"] >> k & 1:
            refuse_if(not -size <= begin < size, f"position {begin} of {size}")
            self.parts.append((at, begin % size, 1, 1))
            return
        low = None if masks["begin"] >> k & 1 else begin
        high = None if masks["end"] >> k & 1 else end
        refuse_if(step == 0, "a slice with the step 0")
        positions = range(*slice(low, high, step).indices(size))
        self.final.append(at)
        self.parts.append((at, positions[0] if len(positions) else 0, step, len(positions)))

    def sliced(self, x: Value) -> Value:
        """Return the slice."""
        for part in self.parts:
            x = sliced(x, *part)
        dropped = [at for at, *_ in self.parts if at not in self.final]
        x = squeezed(x, dropped)
        return unsqueezed(x, [k for k, at in enumerate(self.final) if at is None])

    def shape(self) -> list[int]:
        """Return the shape of the result."""
        return [1 if at is None else self.parts[at][3] for at in self.final]


def _strided_slice_gradient(c: Context) -> Sequence[Value]:
    """StridedSliceGrad(shape, begin, end, step, dy): dy where the slice was, 0 elsewhere."""
    b, dy = c.b, c.input(4)
    shape = c.integers(0, "the shape of the result")
    check_constant(shape, dy.type.size)
    dense = _Dense(c, 1, shape)
    if tuple(dense.shape()) != dy.shape:
        raise Refused(f"a gradient of shape {list(dy.shape)} for a slice of shape {dense.shape()}")
    places = iterators(dy.rank)
    own = {at: places[k] for k, at in enumerate(dense.final) if at is not None}
    write = [start + step * own[at] if at in own else start for at, start, step, _ in dense.parts]
    return only(b.statement(dy.shape, [Term(dy, places)], shape, write, lambda x: x, Combine.ADD))


# -- parts


def _concat(c: Context, axis_first: bool = False) -> Sequence[Value]:
    parts = c.inputs[1:] if axis_first else c.inputs[:-1]
    at = c.whole(0 if axis_first else len(c.values) - 1, "its axis")
    refuse_if(
        len({p.type for p in parts}) != 1 or len({p.rank for p in parts}) != 1,
        "parts of different types or ranks",
    )
    return only(concatenated(c.b, parts, axis(at, parts[0].rank)))


def _pack(c: Context) -> Sequence[Value]:
    parts = c.inputs
    refuse_if(not parts or len({(p.type, p.shape) for p in parts}) != 1, "parts of different types or shapes")
    return only(stacked(c.b, parts, axis(c.integer("axis", 0), parts[0].rank + 1)))


def _split(c: Context) -> Sequence[Value]:
    x, count = c.input(1), c.integer("num_split")
    at = axis(c.whole(0, "its axis"), x.rank)
    refuse_if(count < 1 or x.shape[at] % count, f"{count} equal parts of {x.shape[at]}")
    return split_parts(x, at, [x.shape[at] // count] * count)


def _split_sizes(c: Context) -> Sequence[Value]:
    x, sizes = c.input(), c.integers(1, "its sizes")
    at = axis(c.whole(2, "its axis"), x.rank)
    rest = x.shape[at] - sum(n for n in sizes if n != -1)
    return split_parts(x, at, [rest if n == -1 else n for n in sizes])


# -- padding


def _pads(c: Context, *, grown: bool = True) -> tuple[list[int], list[int]]:
    x, pads = c.input(), c.known(1, "its paddings")
    refuse_if(pads.shape != (x.rank, 2), f"paddings of shape {list(pads.shape)} for {x.rank} axes")
    before, after = ([int(n) for n in pads[:, k]] for k in range(2))
    if grown:
        check_constant([n + a + z for n, a, z in zip(x.shape, before, after, strict=True)], x.type.size)
    return before, after


def _pad(c: Context) -> Sequence[Value]:
    number = 0 if c.optional(2) is None else c.one(2, "its value").item()
    return only(padded(c.b, c.input(), *_pads(c), number, hint=""))


_MODE = From(lambda c: c.text("mode", "REFLECT").lower())

# -- blocks


def _depth_to_space(c: Context) -> Sequence[Value]:
    x, n = _image(c), c.integer("block_size")
    batch, height, width, channels = x.shape
    refuse_if(n < 1 or channels % (n * n), f"{channels} channels in blocks of {n}")
    wide = transposed(split(x, 3, (n, n, channels // (n * n))), (0, 1, 3, 2, 4, 5))
    return only(reshaped(c.b, wide, (batch, height * n, width * n, channels // (n * n))))


def _space_to_depth(c: Context) -> Sequence[Value]:
    x, n = _image(c), c.integer("block_size")
    batch, height, width, channels = x.shape
    refuse_if(n < 1 or height % n or width % n, f"{height} x {width} in blocks of {n}")
    parts = split(split(x, 2, (width // n, n)), 1, (height // n, n))
    wide = transposed(parts, (0, 1, 3, 2, 4, 5))
    return only(reshaped(c.b, wide, (batch, height // n, width // n, channels * n * n)))


def _image(c: Context) -> Value:
    x = c.input()
    if x.rank != 4 or c.text("data_format", "NHWC") != "NHWC":
        raise Refused(f"data of rank {x.rank} in the layout {c.text('data_format', 'NHWC')}")
    return x


def _space_to_batch(c: Context) -> Sequence[Value]:
    """SpaceToBatchND(x, blocks, pads): the phases of a grid become images."""
    b, x, blocks = c.b, c.input(), c.integers(1, "its blocks")
    pads = c.known(2, "its paddings")
    count = len(blocks)
    refuse_if(
        pads.shape != (count, 2) or x.rank < count + 1 or min(blocks, default=1) < 1,
        f"blocks {blocks} of data of rank {x.rank}",
    )
    rest = [0] * (x.rank - count - 1)
    before, after = ([0, *(int(n) for n in pads[:, k]), *rest] for k in range(2))
    x = padded(b, x, before, after)
    for k in reversed(range(count)):
        refuse_if(x.shape[1 + k] % blocks[k], f"{x.shape[1 + k]} in blocks of {blocks[k]}")
        x = split(x, 1 + k, (x.shape[1 + k] // blocks[k], blocks[k]))
    inner = [2 + 2 * k for k in range(count)]
    order = [*inner, 0, *(1 + 2 * k for k in range(count)), *range(1 + 2 * count, x.rank)]
    wide = transposed(x, order)
    shape = (prod(wide.shape[: count + 1]), *wide.shape[count + 1 :])
    return only(reshaped(b, wide, shape))


def _batch_to_space(c: Context) -> Sequence[Value]:
    """BatchToSpaceND(x, blocks, crops): images become the phases of a grid."""
    b, x, blocks = c.b, c.input(), c.integers(1, "its blocks")
    crops = c.known(2, "its crops")
    count = len(blocks)
    refuse_if(
        crops.shape != (count, 2) or x.rank < count + 1 or not prod(blocks) or x.shape[0] % prod(blocks),
        f"blocks {blocks} of data {list(x.shape)}",
    )
    wide = split(x, 0, (*blocks, x.shape[0] // prod(blocks)))
    order = [count]
    for k in range(count):
        order += [count + 1 + k, k]
    wide = transposed(wide, [*order, *range(2 * count + 1, wide.rank)])
    space = [n * k for n, k in zip(x.shape[1:], blocks, strict=False)]
    result = reshaped(b, wide, (x.shape[0] // prod(blocks), *space, *x.shape[1 + count :]))
    for k in range(count):
        low, high = (int(n) for n in crops[k])
        result = sliced(result, 1 + k, low, 1, max(0, space[k] - low - high))
    return only(result)


def _band(c: Context) -> Sequence[Value]:
    """MatrixBandPart: what is within so many diagonals below and above, else 0; -1 is all of them."""
    b, x = c.b, c.input()
    refuse_if(x.rank < 2, f"data of rank {x.rank}")
    low, high = (c.whole(k, "its band") for k in (1, 2))
    for width, upper in ((low, True), (high, False)):
        if width >= 0:
            offset = -width if upper else width
            x = masked(b, x, triangle(b, x.shape[-2], x.shape[-1], offset, upper=upper))
    return only(x)


OPERATIONS: Table = {
    **dict.fromkeys(
        ("Shape", "ShapeN", "VariableShape"), lambda c: [_integers(c, x.shape) for x in c.inputs]
    ),
    "Size": view(selected, From(lambda c: _integers(c, [c.input().size])), 0, 0),
    "Rank": lambda c: only(c.b.constant(np.asarray(c.input().rank, np.int32))),
    "Fill": _fill,
    "Range": op(steps, *(one(k, "its range") for k in range(3))),
    "ConcatOffset": _concat_offset,
    "BroadcastGradientArgs": _reduced_axes,
    "InvertPermutation": lambda c: only(_integers(c, np.argsort(c.integers(0, "the order")).tolist(), "T")),
    "BroadcastArgs": lambda c: only(_integers(c, broadcast_shape(_stated_shapes(c)), "T")),
    "ListDiff": _difference,
    "ReverseSequence": op(reversed_sequences, X, value(1), at("seq_dim"), at("batch_dim", 0)),
    "MirrorPadGrad": lambda c: only(padding_gradient(c.b, c.input(), *_pads(c, grown=False), _MODE.read(c))),
    "Reshape": op(reshaped, X, From(lambda c: with_rest(c.integers(1, "its shape"), c.input().size))),
    "Squeeze": _squeeze,
    "ExpandDims": view(unsqueezed, X, From(lambda c: [axis(c.whole(1, "its axis"), c.input().rank + 1)])),
    "Transpose": view(permuted, X, integers(1, "the order of axes")),
    "BroadcastTo": _broadcast_to,
    "Tile": op(repeated, X, integers(1, "its repeats")),
    "ReverseV2": _reverse,
    "Roll": _roll,
    "Slice": _slice,
    "StridedSlice": lambda c: only(_Dense(c, 1, c.input().shape).sliced(c.input())),
    "StridedSliceGrad": _strided_slice_gradient,
    "Concat": partial(_concat, axis_first=True),
    "ConcatV2": _concat,
    "Pack": _pack,
    "Unpack": view(unstacked, X, From(lambda c: axis(c.integer("axis", 0), c.input().rank))),
    "Split": _split,
    "SplitV": _split_sizes,
    "Pad": _pad,
    "PadV2": _pad,
    "MirrorPad": lambda c: only(padded_by_mode(c.b, c.input(), *_pads(c), _MODE.read(c))),
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "SpaceToBatchND": _space_to_batch,
    "BatchToSpaceND": _batch_to_space,
    "MatrixBandPart": _band,
}
