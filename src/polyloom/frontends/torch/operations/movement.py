"""Views and copies: reshape, transpose, slices, concatenation, padding, constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, prod
from operator import add, eq, floordiv, ge, gt, le, lt, mod, mul, ne, sub
from typing import Any

import numpy as np

from polyloom.frontends.graph.core import (
    Formula,
    From,
    Refused,
    Value,
    X,
    at,
    attribute,
    axis,
    broadcast_shape,
    cast,
    check_constant,
    concatenated,
    diagonal,
    expanded,
    filled,
    flipped,
    gathered,
    iterators,
    mapped,
    masked,
    matrix_turned,
    only,
    op,
    padded,
    padded_by_mode,
    padding_gradient,
    refuse_if,
    reindexed,
    reshaped,
    rolled,
    scalar,
    selected,
    slice_bounds,
    sliced,
    split,
    split_parts,
    squeezed,
    stacked,
    taken,
    tiled,
    transposed,
    triangle,
    unsqueezed,
    unstacked,
    view,
    with_diagonal,
    with_rest,
    wrapped,
)
from polyloom.frontends.torch.arguments import TYPE
from polyloom.frontends.torch.call import Call, Lowering, operation, operations

# -- shapes


def _reshaped(c: Call, name: str = "size") -> Sequence[Value]:
    x = c.input()
    refuse_if(c.given("dtype"), "the bytes of elements as another type")
    return only(reshaped(c.b, x, with_rest(c.numbers(name, ()), x.size)))


def _flatten(c: Call) -> Sequence[Value]:
    x = c.input()
    if x.rank == 0:
        return only(unsqueezed(x, [0]))
    first, last = c.axis("start_dim", x.rank, 0), c.axis("end_dim", x.rank, -1)
    refuse_if(first > last, "the first axis comes after the last")
    middle = prod(x.shape[first : last + 1])
    return only(reshaped(c.b, x, (*x.shape[:first], middle, *x.shape[last + 1 :])))


def _unflatten(c: Call) -> Sequence[Value]:
    x = c.input()
    at = c.axis("dim", x.rank)
    sizes = with_rest(c.numbers("sizes"), x.shape[at])
    return only(reshaped(c.b, x, (*x.shape[:at], *sizes, *x.shape[at + 1 :])))


def _permuted(c: Call) -> Sequence[Value]:
    x = c.input()
    order = [axis(n, x.rank) for n in c.numbers("dims", ())]
    refuse_if(sorted(order) != list(range(x.rank)), f"an order {order} of {x.rank} axes")
    return only(transposed(x, order))


def _swapped(c: Call) -> Sequence[Value]:
    x = c.input()
    names = ("axis0", "axis1") if "axis0" in c.arguments else ("dim0", "dim1")
    if x.rank == 0:
        return only(x)
    first, second = (c.axis(name, x.rank) for name in names)
    order = list(range(x.rank))
    order[first], order[second] = second, first
    return only(transposed(x, order))


def _movedim(c: Call) -> Sequence[Value]:
    x = c.input()
    source = [axis(n, x.rank) for n in c.numbers("source")]
    target = [axis(n, x.rank) for n in c.numbers("destination")]
    rest = iter(k for k in range(x.rank) if k not in source)
    given = dict(zip(target, source, strict=True))
    return only(transposed(x, [given[k] if k in given else next(rest) for k in range(x.rank)]))


def _expanded(c: Call) -> Sequence[Value]:
    x, size = c.input(), c.numbers("size", ())
    lead = len(size) - x.rank
    refuse_if(lead < 0, f"data of rank {x.rank} as {list(size)}")
    shape = [x.shape[k - lead] if n == -1 and k >= lead else n for k, n in enumerate(size)]
    refuse_if(broadcast_shape([x.shape, tuple(shape)]) != tuple(shape), f"data {list(x.shape)} as {shape}")
    return only(expanded(x, shape))


def _broadcast_tensors(c: Call) -> Sequence[Value]:
    values = c.tensors("tensors")
    shape = broadcast_shape([v.shape for v in values])
    return [expanded(v, shape) for v in values]


def _squeezed(c: Call) -> Sequence[Value]:
    """Squeeze: axes that are not of size 1 stay."""
    x = c.input()
    chosen = c.axes("dim", x.rank) if c.given("dim") else list(range(x.rank))
    if c.given("dim") and not c.numbers("dim"):
        chosen = []
    return only(squeezed(x, [k for k in chosen if x.shape[k] == 1]))


# -- parts


def _sliced(c: Call) -> Sequence[Value]:
    x = c.input()
    at = c.axis("dim", x.rank, 0)
    size = x.shape[at]
    step = c.integer("step", 1)
    start, length = slice_bounds(size, c.integer("start", 0), c.integer("end", size), step)
    return only(sliced(x, at, start, step, length))


def _narrowed(c: Call) -> Sequence[Value]:
    x = c.input()
    at = c.axis("dim", x.rank)
    start, length = c.integer("start"), c.integer("length")
    start += x.shape[at] if start < 0 else 0
    refuse_if(
        not 0 <= start <= start + length <= x.shape[at], f"{length} elements from {start} on of {x.shape[at]}"
    )
    return only(sliced(x, at, start, 1, length))


def _selected(c: Call) -> Sequence[Value]:
    """Select one slice of an axis; its position may be data (``x[n]`` of a tensor ``n``)."""
    x = c.input()
    at = c.axis("dim", x.rank)
    if c.is_tensor("index") and c.b.known(c.input("index")) is None:
        place = reshaped(c.b, c.input("index"), ())
        return only(gathered(c.b, x, wrapped(c.b, place, x.shape[at]), at))
    return only(selected(x, at, axis(c.integer("index"), x.shape[at])))


def _split(c: Call) -> Sequence[Value]:
    """Split in parts of one size (the last may be smaller), or of given sizes."""
    x = c.input()
    at = c.axis("dim", x.rank, 0)
    name = next(n for n in ("split_size", "split_sizes") if n in c.arguments)
    sizes = c.attribute(name)
    if isinstance(sizes, int):
        return split_parts(x, at, _equal(x.shape[at], sizes))
    return split_parts(x, at, c.numbers(name))


def _equal(total: int, size: int) -> list[int]:
    refuse_if(size < 1, f"parts of {size}")
    return [min(size, total - k) for k in range(0, max(total, 1), size)]


def _chunks(c: Call) -> Sequence[Value]:
    x = c.input()
    at = c.axis("dim", x.rank, 0)
    return split_parts(x, at, _equal(x.shape[at], max(1, ceil(x.shape[at] / max(1, c.integer("chunks"))))))


def _diagonal(c: Call) -> Sequence[Value]:
    """The diagonal, as the last axis."""
    x = c.input()
    first, second = c.axis("dim1", x.rank, 0), c.axis("dim2", x.rank, 1)
    offset = c.integer("offset", 0)
    at = second if offset > 0 else first
    x = sliced(x, at, abs(offset), 1, max(0, x.shape[at] - abs(offset)))
    found = diagonal(x, first, second)
    place = first - (1 if second < first else 0)
    order = [*(k for k in range(found.rank) if k != place), place]
    return only(transposed(found, order))


# -- copies


def _concatenated(c: Call) -> Sequence[Value]:
    parts = [cast(c.b, v, c.type) for v in c.tensors("tensors")]
    parts = [p for p in parts if p.shape != (0,)] or parts[:1]
    return only(concatenated(c.b, parts, c.axis("dim", parts[0].rank, 0)))


def _stacked(c: Call) -> Sequence[Value]:
    parts = [cast(c.b, v, c.type) for v in c.tensors("tensors")]
    return only(stacked(c.b, parts, axis(c.integer("dim", 0), parts[0].rank + 1)))


def _tiled(c: Call) -> Sequence[Value]:
    x = c.input()
    repeats = c.numbers("repeats" if "repeats" in c.arguments else "dims")
    wide = unsqueezed(x, list(range(max(0, len(repeats) - x.rank))))
    return only(tiled(c.b, wide, (*(1,) * (wide.rank - len(repeats)), *repeats)))


def _repeated(c: Call) -> Sequence[Value]:
    """``repeat_interleave`` by one number, or by known numbers, one for each slice.

    Without data it gives the positions of what is repeated.
    """
    if "self" not in c.arguments:
        count = c.input("repeats").size
        return only(c.b.constant(np.repeat(np.arange(count), _times(c, count))))
    x = c.input()
    if not c.given("dim"):
        x = reshaped(c.b, x, [x.size])
    at = c.axis("dim", x.rank, 0)
    places = np.repeat(np.arange(x.shape[at]), _times(c, x.shape[at]))
    return only(taken(c.b, x, at, places.tolist()))


def _times(c: Call, count: int) -> list[int]:
    """Return how often each slice comes. Raises ``Refused``."""
    if not c.is_tensor("repeats"):
        times = [c.integer("repeats")] * count
    else:
        known = c.b.known(c.input("repeats"))
        if known is None:
            raise Refused("`repeats` is computed when the model runs: it decides the shape")
        times = [int(n) for n in np.broadcast_to(known.reshape(-1), count)]
    check_constant([sum(times)], 8)
    refuse_if(min(times, default=0) < 0, f"repeats {times}")
    return times


def _flipped(c: Call) -> Sequence[Value]:
    x = c.input()
    for number in c.numbers("dims", ()):
        x = flipped(x, axis(number, x.rank))
    return only(x)


def _rolled(c: Call) -> Sequence[Value]:
    x, shifts, dims = c.input(), c.numbers("shifts"), c.numbers("dims", ())
    shape = x.shape
    if not dims:
        x, dims = reshaped(c.b, x, [x.size]), (0,)
    for shift, dim in zip(shifts, dims, strict=True):
        x = rolled(c.b, x, axis(dim, x.rank), shift)
    return only(reshaped(c.b, x, shape))


def _padded(c: Call) -> Sequence[Value]:
    """Padding, given from the last axis on."""
    x, (before, after) = c.input(), _pads(c)
    mode = _pad_mode(c)
    if mode != "constant":
        if mode == "wrap":
            _check_not_cut(before, after)
        return only(padded_by_mode(c.b, x, before, after, mode))
    number = c.attribute("value", 0)
    return only(padded(c.b, x, before, after, number if x.type.is_float else int(number)))


def _pads(c: Call) -> tuple[list[int], list[int]]:
    rank, pads = c.input().rank, c.numbers("pad" if "pad" in c.arguments else "padding")
    refuse_if(len(pads) % 2 or len(pads) > 2 * rank, f"{len(pads)} paddings of {rank} axes")
    before, after = [0] * rank, [0] * rank
    for k in range(len(pads) // 2):
        before[rank - 1 - k], after[rank - 1 - k] = pads[2 * k], pads[2 * k + 1]
    return before, after


def _check_not_cut(before: Sequence[int], after: Sequence[int]) -> None:
    refuse_if(min((*before, *after), default=0) < 0, "negative padding with elements")


def _padding_gradient(c: Call) -> Sequence[Value]:
    if _pad_mode(c) == "wrap":
        _check_not_cut(*_pads(c))
    return only(padding_gradient(c.b, c.input("grad_output"), *_pads(c), _pad_mode(c)))


def _pad_mode(c: Call) -> str:
    operation = c.node.op.split(".")[1]
    name = c.text("mode", "constant") if operation == "pad" else operation
    for known, meant in (("reflect", "reflect"), ("replic", "edge"), ("circular", "wrap")):
        if name.startswith(known):
            return meant
    return "constant"


def _triangle(c: Call, *, upper: bool) -> Sequence[Value]:
    x = c.input()
    refuse_if(x.rank < 2, f"a matrix of rank {x.rank}")
    inside = triangle(c.b, x.shape[-2], x.shape[-1], c.integer("diagonal", 0), upper=upper)
    return only(masked(c.b, x, inside))


def _windows(c: Call) -> Sequence[Value]:
    """``unfold``: the windows of an axis in a new last axis, a view."""
    x = c.input()
    at, size, step = c.axis("dimension", x.rank), c.integer("size"), c.integer("step")
    refuse_if(
        not 0 < size <= x.shape[at] or step < 1, f"windows of {size}, {step} apart, of {x.shape[at]} elements"
    )
    places: list[Formula] = [*iterators(x.rank)]
    places[at] = step * iterators(x.rank)[at] + iterators(x.rank + 1)[-1]
    count = (x.shape[at] - size) // step + 1
    return only(reindexed(x, [count if k == at else n for k, n in enumerate((*x.shape, size))], places))


def _halves_gated(c: Call) -> Sequence[Value]:
    """``glu``: the first half of an axis times the sigmoid of the other."""
    x = c.input()
    at = c.axis("dim", x.rank, -1)
    left, right = split_parts(x, at, [x.shape[at] // 2, x.shape[at] - x.shape[at] // 2])
    return only(mapped(c.b, lambda v, w: v * scalar.sigmoid(w), left, right))


def _channels_shuffled(c: Call) -> Sequence[Value]:
    x, groups = c.input(), c.integer("groups")
    refuse_if(
        x.rank < 3 or groups < 1 or x.shape[1] % groups,
        f"{groups} groups of channels of the shape {list(x.shape)}",
    )
    wide = split(x, 1, (groups, x.shape[1] // groups))
    return only(reshaped(c.b, transposed(wide, [0, 2, 1, *range(3, wide.rank)]), x.shape))


def _filled(c: Call) -> Sequence[Value]:
    """``fill`` and ``zero``: a number, or a tensor of one element, everywhere."""
    return only(expanded(c.operand("value", c.type, 0), c.input().shape))


def _select_replaced(c: Call) -> Sequence[Value]:
    """``select_scatter``: one slice of an axis replaced."""
    x, part = c.input(), c.input("src")
    at = c.axis("dim", x.rank)
    place = axis(c.integer("index"), x.shape[at])
    after = x.shape[at] - place - 1
    parts = [sliced(x, at, 0, 1, place), unsqueezed(part, [at]), sliced(x, at, place + 1, 1, after)]
    return only(concatenated(c.b, parts, at))


def _diagonal_replaced(c: Call) -> Sequence[Value]:
    """``diagonal_scatter``, of a matrix or several."""
    x, d, number = c.input(), c.input("src"), c.integer("offset", 0)
    first, second = c.axis("dim1", x.rank, 0), c.axis("dim2", x.rank, 1)
    order = [*(k for k in range(x.rank) if k not in (first, second)), first, second]
    found = with_diagonal(c.b, transposed(x, order), d, number)
    return only(transposed(found, [order.index(k) for k in range(x.rank)]))


def _shuffled(c: Call) -> Sequence[Value]:
    """Pixel shuffle: ``(c r r, h, w)`` to ``(c, h r, w r)``."""
    x, r = c.input(), c.integer("upscale_factor")
    lead, (channels, h, w) = x.shape[:-3], x.shape[-3:]
    refuse_if(r < 1 or channels % (r * r), f"{channels} channels by {r}")
    n = len(lead)
    parts = reshaped(c.b, x, (*lead, channels // (r * r), r, r, h, w))
    permuted = transposed(parts, [*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return only(reshaped(c.b, permuted, (*lead, channels // (r * r), h * r, w * r)))


def _unshuffled(c: Call) -> Sequence[Value]:
    x, r = c.input(), c.integer("downscale_factor")
    lead, (channels, h, w) = x.shape[:-3], x.shape[-3:]
    refuse_if(r < 1 or h % r or w % r, f"{h} x {w} by {r}")
    n = len(lead)
    parts = reshaped(c.b, x, (*lead, channels, h // r, r, w // r, r))
    permuted = transposed(parts, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return only(reshaped(c.b, permuted, (*lead, channels * r * r, h // r, w // r)))


# -- gradients of views


def _slice_gradient(c: Call) -> Sequence[Value]:
    """The gradient at its places in zeros; of zeros behind the last element some may be too many."""
    dy, sizes, step = c.input("grad_output"), c.numbers("input_sizes"), c.integer("step", 1)
    at = axis(c.integer("dim"), len(sizes))
    start, length = slice_bounds(sizes[at], c.integer("start", 0), c.integer("end", sizes[at]), step)
    refuse_if(length != dy.shape[at], f"a gradient of {dy.shape[at]} elements for a slice of {length}")
    return only(_among_zeros(c, _apart(c, dy, at, step), at, start, sizes[at]))


def _apart(c: Call, dy: Value, at: int, step: int) -> Value:
    """Return a value whose elements are ``step`` apart along an axis, zeros behind each of them."""
    if step == 1:
        return dy
    behind = [step - 1 if k == at + 1 else 0 for k in range(dy.rank + 1)]
    spread = padded(c.b, unsqueezed(dy, [at + 1]), [0] * (dy.rank + 1), behind)
    return reshaped(c.b, spread, (*dy.shape[:at], dy.shape[at] * step, *dy.shape[at + 1 :]))


def _among_zeros(c: Call, dy: Value, at: int, start: int, size: int) -> Value:
    before = [start if k == at else 0 for k in range(dy.rank)]
    after = [size - start - n if k == at else 0 for k, n in enumerate(dy.shape)]
    return padded(c.b, dy, before, after)


def _select_gradient(c: Call) -> Sequence[Value]:
    sizes = c.numbers("input_sizes")
    at = axis(c.integer("dim"), len(sizes))
    place = axis(c.integer("index"), sizes[at])
    return only(_among_zeros(c, unsqueezed(c.input("grad_output"), [at]), at, place, sizes[at]))


# -- constants


def _full(number: Any) -> Lowering:
    """Return the operation that fills a shape with a number."""
    return op(filled, From(lambda c: c.numbers("size", ())), number, TYPE)


def _arange(c: Call) -> Sequence[Value]:
    start, end, step = (c.attribute(n, d) for n, d in (("start", 0), ("end", 0), ("step", 1)))
    refuse_if(step == 0, "a step of 0")
    count = max(0, ceil((end - start) / step))
    check_constant((count,), 8)
    return only(c.b.constant((start + step * np.arange(count)).astype(c.type.dtype)))


def _triangle_places(c: Call, *, upper: bool) -> Sequence[Value]:
    """``tril_indices``, ``triu_indices``: rows and columns of the elements of a triangle."""
    rows, columns, offset = c.integer("row"), c.integer("col"), c.integer("offset", 0)
    check_constant((rows, columns), 8)
    found = (np.triu_indices if upper else np.tril_indices)(rows, offset, columns)
    return only(c.b.constant(np.stack(found).astype(c.type.dtype)))


def _eye(c: Call) -> Sequence[Value]:
    rows = c.integer("n")
    columns = c.integer("m", rows)
    check_constant((rows, columns), 8)
    return only(c.b.constant(np.eye(rows, columns, dtype=c.type.dtype)))


def _of_sizes(c: Call, function: Callable[[int, int], int | bool]) -> Sequence[Value]:
    """Arithmetic or a comparison of symbolic sizes, which are known here."""
    left, right = (c.attribute(name) for name in c.arguments)
    if not isinstance(left, int) or not isinstance(right, int):
        raise Refused("arithmetic of sizes that are no integers")
    return only(c.b.constant(np.asarray(function(left, right))))


_PAD_GRADIENTS = [f"{kind}_pad{n}d_backward" for kind in ("reflection", "replication") for n in (1, 2, 3)]
_PADS = [f"{kind}_pad{n}d" for kind in ("reflection", "replication", "constant") for n in (1, 2, 3)]


_turned = view(transposed, X, From(lambda c: list(range(c.input().rank))[::-1]))
"""``t``, ``T``, ``numpy_T``: the axes in the other order."""

OPERATIONS = operations(
    {
        **dict.fromkeys(("view", "_unsafe_view", "view_copy"), _reshaped),
        "reshape": partial(_reshaped, name="shape"),
        "flatten": _flatten,
        "unflatten": _unflatten,
        "permute": _permuted,
        "permute_copy": _permuted,
        "transpose": _swapped,
        "swapaxes": _swapped,
        "swapdims": _swapped,
        "t": _turned,
        "numpy_T": _turned,
        **dict.fromkeys(("mT", "adjoint"), view(matrix_turned, X)),
        "movedim": _movedim,
        "moveaxis": _movedim,
        "expand": _expanded,
        "expand_copy": _expanded,
        "broadcast_to": _expanded,
        "expand_as": view(expanded, X, From(lambda c: c.input("other").shape)),
        "broadcast_tensors": _broadcast_tensors,
        "unsqueeze": view(unsqueezed, X, From(lambda c: [axis(c.integer("dim"), c.input().rank + 1)])),
        "squeeze": _squeezed,
        "slice": _sliced,
        "narrow": _narrowed,
        "narrow_copy": _narrowed,
        "select": _selected,
        "split": _split,
        "split_with_sizes": _split,
        "chunk": _chunks,
        "unbind": view(unstacked, X, at("dim", 0)),
        "diagonal": _diagonal,
        "cat": _concatenated,
        "concat": _concatenated,
        "stack": _stacked,
        "repeat": _tiled,
        "tile": _tiled,
        "repeat_interleave": _repeated,
        "flip": _flipped,
        "roll": _rolled,
        "pad": _padded,
        "constant_pad_nd": _padded,
        **dict.fromkeys(_PADS, _padded),
        **dict.fromkeys(_PAD_GRADIENTS, _padding_gradient),
        "tril": partial(_triangle, upper=False),
        "triu": partial(_triangle, upper=True),
        "unfold": _windows,
        "glu": _halves_gated,
        "channel_shuffle": _channels_shuffled,
        "native_channel_shuffle": _channels_shuffled,
        "select_scatter": _select_replaced,
        "diagonal_scatter": _diagonal_replaced,
        "pixel_shuffle": _shuffled,
        "pixel_unshuffle": _unshuffled,
        # ``copy(self, src)``: the elements of ``src`` in the shape and type of ``self``.
        "copy": op(cast, From(lambda c: expanded(c.input("src"), c.input().shape)), TYPE),
        "fill": _filled,
        "zero": _filled,
        "slice_backward": _slice_gradient,
        "select_backward": _select_gradient,
        "full": _full(attribute("fill_value")),
        "zeros": _full(0),
        "ones": _full(1),
        **dict.fromkeys(
            ("empty", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"), _full(0)
        ),  # any number
        "new_zeros": _full(0),
        "new_ones": _full(1),
        "new_full": _full(attribute("fill_value")),
        "scalar_tensor": op(filled, (), attribute("s"), TYPE),
        "arange": _arange,
        "eye": _eye,
        "tril_indices": partial(_triangle_places, upper=False),
        "triu_indices": partial(_triangle_places, upper=True),
        "_local_scalar_dense": view(lambda x: x, X),  # where data decide a shape, its reader says so
        # A symbolic size: known here, for shapes are.
        "sym_size": lambda c: only(c.b.constant(np.asarray(c.input().shape[c.axis("dim", c.input().rank)]))),
    }
) | {
    f"_operator.{f.__name__}": operation(partial(_of_sizes, function=f))
    for f in (add, sub, mul, floordiv, mod, eq, ge, gt, le, lt, ne)
}
