"""Movement: shapes, slices, padding, concatenation, gathering; shape arithmetic is folded by the builder."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from polyloom.frontends.graph.core import (
    REDUCTIONS,
    Combine,
    Context,
    ElementType,
    Expression,
    From,
    Refused,
    Table,
    Value,
    X,
    axes,
    axis,
    broadcast_shape,
    check_constant,
    chosen,
    columns_added,
    concatenated,
    element_type,
    elements_updated,
    expanded,
    filled,
    gathered_elements,
    gathered_nd,
    integer,
    integers,
    iota,
    mapped,
    masked,
    one,
    one_hot,
    only,
    op,
    padded,
    padded_by_mode,
    permuted,
    refuse_if,
    refused,
    repeated,
    reshaped,
    reversed_sequences,
    scalar,
    selected,
    slice_bounds,
    sliced,
    split,
    split_parts,
    squeezed,
    steps,
    taken,
    transposed,
    triangle,
    unsqueezed,
    updated_at,
    value,
    view,
    with_rest,
    wrapped,
)
from polyloom.frontends.onnx.operations.elementwise import type_of
from polyloom.frontends.onnx.operations.linear import window_of


def _constant(c: Context) -> Sequence[Value]:
    for name, found in c.node.attributes.items():
        match name:
            case "value" if isinstance(found, np.ndarray):
                return only(c.b.constant(found))
            case "value_float" | "value_floats":
                return only(c.b.constant(np.asarray(found, np.float32)))
            case "value_int" | "value_ints":
                return only(c.b.constant(np.asarray(found, np.int64)))
            case _:
                reason = getattr(found, "reason", f"a constant by `{name}`")
                raise Refused(reason)
    raise Refused("a constant without a value")


def _constant_of_shape(c: Context) -> Sequence[Value]:
    shape = c.integers(0, "its shape")
    number = c.attribute("value", np.zeros(1, np.float32))
    if not isinstance(number, np.ndarray) or number.size != 1:
        raise Refused("its value is no single number")
    kind = element_type(number.dtype)
    if kind is None:
        raise Refused(f"elements of type {number.dtype}")
    return only(filled(c.b, shape, number.item(), kind))


def _shape(c: Context) -> Sequence[Value]:
    rank = c.input().rank
    start, end = c.integer("start", 0), c.integer("end", rank)
    return only(c.b.constant(np.asarray(c.input().shape[slice(start, end)], np.int64)))


def _reshape(c: Context) -> Sequence[Value]:
    x = c.input()
    wanted = c.integers(1, "its shape") if c.version >= 5 else list(c.numbers("shape"))
    if not c.integer("allowzero", 0):
        wanted = [x.shape[k] if n == 0 and k < x.rank else n for k, n in enumerate(wanted)]
    return only(reshaped(c.b, x, with_rest(wanted, x.size)))


def _flatten(c: Context) -> Sequence[Value]:
    x = c.input()
    at = c.integer("axis", 1)
    refuse_if(not -x.rank <= at <= x.rank, f"axis {at} of {x.rank}")
    at = at % x.rank if at < 0 else at
    return only(reshaped(c.b, x, (prod(x.shape[:at]), prod(x.shape[at:]))))


def _axes_of(c: Context, position: int, version: int) -> list[int] | None:
    """Return the axes that an attribute (before ``version``) or an input names; None: none are named."""
    if c.version >= version:
        return None if c.optional(position) is None else c.integers(position, "its axes")
    return None if c.attribute("axes") is None else list(c.numbers("axes"))


def _squeeze(c: Context) -> Sequence[Value]:
    x = c.input()
    named = _axes_of(c, 1, 13)
    chosen_axes = [k for k, n in enumerate(x.shape) if n == 1] if named is None else axes(named, x.rank)
    refuse_if(
        any(x.shape[k] != 1 for k in chosen_axes),
        f"axes {chosen_axes} of the shape {list(x.shape)} are not all of size 1",
    )
    return only(squeezed(x, chosen_axes))


def _unsqueeze(c: Context) -> Sequence[Value]:
    named = _axes_of(c, 1, 13) or []
    return only(unsqueezed(c.input(), axes(named, c.input().rank + len(named))))


def _expand(c: Context) -> Sequence[Value]:
    x = c.input()
    wanted = tuple(c.integers(1, "its shape"))
    check_constant(wanted, 0)
    return only(expanded(x, broadcast_shape([x.shape, wanted])))


def _concat(c: Context) -> Sequence[Value]:
    parts = c.inputs
    refuse_if(
        len({p.type for p in parts}) > 1 or len({p.rank for p in parts}) > 1 or not parts,
        "parts of different types or ranks",
    )
    return only(concatenated(c.b, parts, c.axis("axis", parts[0].rank)))


def _split(c: Context) -> Sequence[Value]:
    x = c.input()
    at = c.axis("axis", x.rank, 0)
    if c.version >= 13:
        sizes = None if c.optional(1) is None else c.integers(1, "its sizes")
    else:
        sizes = None if c.attribute("split") is None else list(c.numbers("split"))
    if sizes is None:
        count = c.integer("num_outputs", len(c.node.outputs))
        refuse_if(
            not 1 <= count <= max(1, len(c.node.outputs), x.shape[at]), f"{count} parts of {x.shape[at]}"
        )
        each = -(-x.shape[at] // count)
        sizes = [max(0, min(each, x.shape[at] - k * each)) for k in range(count)]
    return split_parts(x, at, sizes)


def _slice(c: Context) -> Sequence[Value]:
    x = c.input()
    if c.version < 10:
        starts, ends = list(c.numbers("starts")), list(c.numbers("ends"))
        named = list(c.numbers("axes", tuple(range(len(starts)))))
        steps = [1] * len(starts)
    else:
        starts, ends = c.integers(1, "its starts"), c.integers(2, "its ends")
        named = list(range(len(starts))) if c.optional(3) is None else c.integers(3, "its axes")
        steps = [1] * len(starts) if c.optional(4) is None else c.integers(4, "its steps")
    refuse_if(
        not len(starts) == len(ends) == len(named) == len(steps),
        "different numbers of starts, ends, axes and steps",
    )
    for at, start, end, step in zip(named, starts, ends, steps, strict=True):
        k = axis(at, x.rank)
        first, count = slice_bounds(x.shape[k], start, end, step)
        x = sliced(x, k, first, step, count)
    return only(x)


def _pad(c: Context) -> Sequence[Value]:
    x = c.input()
    if c.version < 11:
        pads, number = list(c.numbers("pads")), c.number("value", 0.0)
    else:
        pads = c.integers(1, "its pads")
        given = c.known_or(2, "its value")
        number = 0 if given is None or given.size == 0 else given.reshape(-1)[0].item()
    named = list(range(x.rank)) if c.optional(3) is None else c.integers(3, "its axes")
    refuse_if(len(pads) != 2 * len(named), f"{len(pads)} pads of {len(named)} axes")
    before, after = [0] * x.rank, [0] * x.rank
    for k, at in enumerate(named):
        before[axis(at, x.rank)], after[axis(at, x.rank)] = pads[k], pads[k + len(named)]
    _check_padded(x, before, after)
    mode = c.text("mode", "constant")
    if mode == "constant":
        return only(padded(c.b, x, before, after, number, hint=""))
    return only(padded_by_mode(c.b, x, before, after, mode))


def _check_padded(x: Value, before: Sequence[int], after: Sequence[int]) -> None:
    shape = [n + low + high for n, low, high in zip(x.shape, before, after, strict=True)]
    check_constant(shape, x.type.size)


def _gather(c: Context) -> Sequence[Value]:
    x, positions = c.input(0), c.input(1)
    at = c.axis("axis", x.rank, 0)
    known = c.b.known_few(positions)
    if known is None:
        return only(chosen(c.b, x, at, wrapped(c.b, positions, x.shape[at])))
    size = x.shape[at]
    if known.size and (known.min() < -size or known.max() >= size):
        raise Refused(f"a position outside the {size} of its axis")
    flat = [int(n) % size for n in known.reshape(-1)]
    if known.ndim == 0:
        return only(selected(x, at, flat[0]))
    result = taken(c.b, x, at, flat)
    return only(reshaped(c.b, result, (*x.shape[:at], *known.shape, *x.shape[at + 1 :])))


def _gather_elements(c: Context) -> Sequence[Value]:
    x, positions = c.input(0), c.input(1)
    at = c.axis("axis", x.rank, 0)
    refuse_if(positions.rank != x.rank, f"positions of rank {positions.rank} for data of rank {x.rank}")
    return only(gathered_elements(c.b, x, at, wrapped(c.b, positions, x.shape[at])))


def _reduction(c: Context) -> Combine | None:
    name = c.text("reduction", "none")
    refuse_if(name != "none" and name not in REDUCTIONS, f"the reduction `{name}`")
    return REDUCTIONS.get(name)


def _scatter_elements(c: Context) -> Sequence[Value]:
    x, positions, updates = c.operands(3)
    at = c.axis("axis", x.rank, 0)
    return only(elements_updated(c.b, x, at, positions, updates, _reduction(c)))


def _tensor_scatter(c: Context) -> Sequence[Value]:
    """TensorScatter(cache, update, places): each image's update from its place on, or round and round."""
    b, x, update, first = c.b, c.input(0), c.input(1), c.optional(2)
    at, mode = c.axis("axis", x.rank, -2), c.text("mode", "linear")
    refuse_if(at == 0 or mode not in ("linear", "circular"), f"the mode `{mode}` along axis {at}")
    start = filled(b, (x.shape[0],), 0, ElementType.INT64) if first is None else first
    numbers = unsqueezed(iota(b, update.shape[at], start.type), [0])

    def place(p: Expression, k: Expression) -> Expression:
        found = scalar.add(p, k)
        return found if mode == "linear" else scalar.remainder(found, scalar.number(x.shape[at], p.type))

    places = mapped(b, place, unsqueezed(start, [1]), numbers, hint="places")
    wide = unsqueezed(places, [k for k in range(x.rank) if k not in (0, at)])
    return only(elements_updated(b, x, at, expanded(wide, update.shape), update, None))


def _one_hot(c: Context) -> Sequence[Value]:
    b, positions, values = c.b, c.input(0), c.input(2)
    size = c.whole(1, "its depth")
    check_constant([*positions.shape, size], values.type.size)
    at = c.axis("axis", positions.rank + 1, -1)
    off, on = selected(values, 0, 0), selected(values, 0, 1)
    return only(one_hot(b, wrapped(b, positions, size), size, at, on, off))


def _depth_to_space(c: Context) -> Sequence[Value]:
    x, n = c.input(), c.integer("blocksize")
    batch, channels, height, width = _image(x)
    refuse_if(n < 1 or channels % (n * n), f"{channels} channels in blocks of {n}")
    rest = channels // (n * n)
    if c.text("mode", "DCR") == "CRD":
        wide = transposed(split(x, 1, (rest, n, n)), (0, 1, 4, 2, 5, 3))
    else:
        wide = transposed(split(x, 1, (n, n, rest)), (0, 3, 4, 1, 5, 2))
    return only(reshaped(c.b, wide, (batch, rest, height * n, width * n)))


def _space_to_depth(c: Context) -> Sequence[Value]:
    x, n = c.input(), c.integer("blocksize")
    batch, channels, height, width = _image(x)
    refuse_if(n < 1 or height % n or width % n, f"{height} x {width} in blocks of {n}")
    parts = split(split(x, 3, (width // n, n)), 2, (height // n, n))
    order = (0, 1, 3, 5, 2, 4) if c.text("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    shape = (batch, channels * n * n, height // n, width // n)
    return only(reshaped(c.b, transposed(parts, order), shape))


def _image(x: Value) -> tuple[int, int, int, int]:
    refuse_if(x.rank != 4, f"data of rank {x.rank}, not 4")
    return x.shape[0], x.shape[1], x.shape[2], x.shape[3]


def _col2im(c: Context) -> Sequence[Value]:
    """Col2Im: sums of blocks, which axis 1 holds with their channels, and axis 2 by their positions."""
    b, x = c.b, c.input()
    shape, sizes = c.integers(1, "its shape"), c.integers(2, "its blocks")
    window = window_of(c, shape, sizes)
    check_constant(shape, x.type.size)
    return only(columns_added(b, x, shape, window))


def _trilu(c: Context) -> Sequence[Value]:
    b, x = c.b, c.input()
    k = c.whole(1, "its diagonal", 0)
    upper = bool(c.integer("upper", 1))
    refuse_if(x.rank < 2, f"data of rank {x.rank}")
    return only(masked(b, x, triangle(b, x.shape[-2], x.shape[-1], k, upper=upper)))


def _eye_like(c: Context) -> Sequence[Value]:
    x = c.input()
    refuse_if(x.rank != 2, f"data of rank {x.rank}, not 2")
    number = c.attribute("dtype")
    kind = x.type if number is None else type_of(number)
    check_constant(x.shape, kind.size)
    c.b.take_room(x.size, kind.size)
    return only(c.b.constant(np.eye(x.shape[0], x.shape[1], c.integer("k", 0)).astype(kind.dtype)))


def _compress(c: Context) -> Sequence[Value]:
    x = c.input()
    kept = np.flatnonzero(c.known(1, "its condition"))
    if c.attribute("axis") is None:
        x, at = reshaped(c.b, x, (x.size,), "flat"), 0
    else:
        at = c.axis("axis", x.rank)
    positions = [int(p) for p in kept]
    refuse_if(positions and positions[-1] >= x.shape[at], "a position outside its axis")
    return only(taken(c.b, x, at, positions))


def _non_zero(c: Context) -> Sequence[Value]:
    found = np.asarray(np.nonzero(c.known(0, "its input, on which its result's shape depends,")))
    return only(c.b.constant(found.astype(np.int64)))


def _center_crop_pad(c: Context) -> Sequence[Value]:
    x = c.input()
    wanted = c.integers(1, "its shape")
    named = axes(c.numbers("axes"), x.rank) if c.attribute("axes") is not None else list(range(x.rank))
    before, after = [0] * x.rank, [0] * x.rank
    refuse_if(len(wanted) != len(named), f"{len(wanted)} extents of {len(named)} axes")
    order = [axis(n, x.rank) for n in c.numbers("axes")] if c.attribute("axes") is not None else named
    for at, size in zip(order, wanted, strict=True):
        missing = size - x.shape[at]
        before[at] = missing // 2 if missing > 0 else -(-missing // 2)
        after[at] = missing - before[at]
    _check_padded(x, before, after)
    return only(padded(c.b, x, before, after, hint=""))


def _reverse_sequence(c: Context) -> Sequence[Value]:
    """ReverseSequence: with known lengths each sequence is a gathering of its own."""
    b, x, lengths = c.b, c.input(0), c.input(1)
    time, batch = c.axis("time_axis", x.rank, 0), c.axis("batch_axis", x.rank, 1)
    known = b.known(lengths)
    if known is None or known.shape != (x.shape[batch],):
        return only(reversed_sequences(b, x, lengths, time, batch))
    parts = []
    for k, length in enumerate(known.tolist()):
        one = sliced(x, batch, k, 1, 1)
        order = [*reversed(range(length)), *range(length, x.shape[time])]
        parts.append(taken(b, one, time, order))
    return only(concatenated(b, parts, batch))


OPERATIONS: Table = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Shape": _shape,
    "Size": lambda c: only(c.b.constant(np.asarray(c.input().size, np.int64))),
    "Range": op(steps, *(one(k, "its range") for k in range(3))),
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Transpose": view(permuted, X, From(lambda c: c.numbers("perm", tuple(reversed(range(c.input().rank)))))),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Expand": _expand,
    "Tile": op(repeated, X, integers(1, "its repeats")),
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Pad": _pad,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    # GatherND: the positions of several axes as one position of these axes merged.
    "GatherND": op(gathered_nd, X, value(1), integer("batch_dims", 0)),
    "ScatterND": op(updated_at, *map(value, range(3)), From(_reduction)),
    "ScatterElements": _scatter_elements,
    "Scatter": _scatter_elements,
    "Col2Im": _col2im,
    "TensorScatter": _tensor_scatter,
    "OneHot": _one_hot,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "Trilu": _trilu,
    "EyeLike": _eye_like,
    "Compress": _compress,
    "NonZero": _non_zero,
    "CenterCropPad": _center_crop_pad,
    "ReverseSequence": _reverse_sequence,
    **dict.fromkeys(
        ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"),
        refused("it chooses at random"),
    ),
}
