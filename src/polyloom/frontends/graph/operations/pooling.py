"""Pooling: maxima, means and norms of windows, and their gradients. Layout ``x[n][c][w...]``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.basis import (
    Builder,
    Combine,
    CompareOp,
    ElementType,
    Expression,
    Function,
    Linear,
    Term,
    Value,
    expanded,
    is_extreme,
    is_nan,
    iterators,
    refuse_if,
    scalar,
    sliced,
)
from polyloom.frontends.graph.operations.convolution import Window
from polyloom.frontends.graph.operations.elementwise import filled, halves_wide, mapped
from polyloom.frontends.graph.operations.indexing import chosen
from polyloom.frontends.graph.operations.movement import padded, reshaped
from polyloom.frontends.graph.operations.scattering import elements_updated

NDArray = npt.NDArray[Any]


def with_ceiling(window: Window, shape: Sequence[int]) -> Window:
    """Return the window with padding behind for a last position that hangs over (``ceil_mode``).

    A position that would begin in the padding behind the data does not count.
    """
    after = []
    for k, size in enumerate(shape):
        room = size + window.before[k] + window.after[k] - window.reach(k)
        last = -(-room // window.strides[k]) * window.strides[k]
        if last >= size + window.before[k]:
            last -= window.strides[k]
        after.append(max(window.after[k], last + window.reach(k) - size - window.before[k]))
    return replace(window, after=tuple(after))


def _domain(window: Window, x: Value) -> tuple[tuple[int, ...], tuple[Linear, ...], tuple[Linear, ...]]:
    """Return the domain (n, c, o..., r...), the places of padded ``x`` and those of the result."""
    positions = window.positions(x.shape[2:])
    axes = iterators(2 + 2 * window.rank)
    o, r = axes[2 : 2 + window.rank], axes[2 + window.rank :]
    along = [s * p + d * q for s, d, p, q in zip(window.strides, window.dilations, o, r, strict=True)]
    domain = (*x.shape[:2], *positions, *window.sizes)
    return domain, (*axes[:2], *along), axes[: 2 + window.rank]


def pooled(
    b: Builder,
    x: Value,
    window: Window,
    combine: Combine,
    function: Function = lambda v: v,
    border: float | int = 0,
    hint: str = "",
) -> Value:
    """Return ``y[n][c][o] combine= function(x[n][c][s*o + d*r])``; ``border`` surrounds the data."""
    window.check()
    refuse_if(x.rank != window.rank + 2, f"a window of {window.rank} dimensions on data of rank {x.rank}")
    inside = padded(b, x, (0, 0, *window.before), (0, 0, *window.after), border)
    domain, read, write = _domain(window, x)
    shape = domain[: 2 + window.rank]
    return b.statement(domain, [Term(inside, read)], shape, write, function, combine, hint)


def max_pool(b: Builder, x: Value, window: Window) -> Value:
    """Return the maxima of windows; padding never wins."""
    return pooled(b, x, window, Combine.MAXIMUM, border=x.type.lowest)


@halves_wide
def average_pool(b: Builder, x: Value, window: Window, counted: Window | None) -> Value:
    """Return the means of windows. ``counted``: a window whose padding counts; None: elements alone count."""
    total = pooled(b, x, window, Combine.ADD, hint="sum")
    counts = _counts(window, counted, x.shape[2:])
    if (counts == counts.flat[0]).all():
        number = float(counts.flat[0])
        return mapped(b, lambda v: scalar.divide(v, number), total)
    divisor = b.constant(counts.astype(x.type.dtype))
    return mapped(b, scalar.divide, total, expanded(divisor, total.shape))


def _counts(window: Window, counted: Window | None, shape: Sequence[int]) -> NDArray:
    """Return by how many elements each position divides: a product over the axes."""
    total = np.ones((1,) * window.rank)
    for k, positions in enumerate(window.positions(shape)):
        low, high = (0, 0) if counted is None else (counted.before[k], counted.after[k])
        starts = np.arange(positions) * window.strides[k] - window.before[k]
        places = starts[:, None] + np.arange(window.sizes[k]) * window.dilations[k]
        inside = ((places >= -low) & (places < shape[k] + high)).sum(1)
        total = total * inside.reshape([-1 if j == k else 1 for j in range(window.rank)])
    return np.maximum(total, 1)


def first_maximum(b: Builder, x: Value, window: Window, maxima: Value, *, last_nan: bool = False) -> Value:
    """Return which element of each window is the first maximum, counted row by row in the window.

    Padding is none, also where nothing is larger than it. ``last_nan``: of several NaN the last counts.
    """
    inside = padded(b, x, (0, 0, *window.before), (0, 0, *window.after), x.type.lowest)
    domain, read, write = _domain(window, x)
    count = int(np.prod(window.sizes))
    numbers = b.constant(np.arange(count, dtype=np.int32).reshape(window.sizes))
    axes = iterators(len(domain))
    own = axes[2 + window.rank :]
    terms = [Term(inside, read), Term(maxima, write), Term(numbers, own)]
    if any((*window.before, *window.after)):
        terms.append(Term(b.constant(_without_border(window, x.shape[2:])), read[2:]))

    def place(v: Expression, m: Expression, k: Expression, *seen: Expression) -> Expression:
        found = scalar.select(is_extreme(v, m), _marked(v, k, last_nan), count - 1)
        return scalar.select(seen[0], found, scalar.number(count - 1, k.type)) if seen else found

    found = b.statement(domain, terms, maxima.shape, write, place, Combine.MINIMUM, "first")
    return _unmarked(b, found, x.type, last_nan)


def _without_border(window: Window, shape: Sequence[int]) -> NDArray:
    """Return which places of padded data are of the data."""
    pairs = zip(window.before, window.after, strict=True)
    return np.pad(np.ones(tuple(shape), np.bool_), tuple(pairs))


def _marked(v: Expression, number: Expression, last_nan: bool) -> Expression:
    """Return a number, for a NaN of which the last counts ``-1 - number``, which is less than all others."""
    return scalar.select(is_nan(v), -1 - number, number) if last_nan and v.type.is_float else number


def _unmarked(b: Builder, found: Value, kind: ElementType, last_nan: bool) -> Value:
    if not (last_nan and kind.is_float):
        return found
    return mapped(b, lambda k: scalar.select(k < 0, -1 - k, k), found, hint="place")


def max_pool_gradient(
    b: Builder, x: Value, maxima: Value, dy: Value, window: Window, *, last_nan: bool = False
) -> Value:
    """Return the gradient of ``max_pool``: each ``dy`` goes to the first maximum of its window.

    ``last_nan``: of several NaN to the last.
    """
    first = first_maximum(b, x, window, maxima, last_nan=last_nan)
    count = int(np.prod(window.sizes))
    numbers = b.constant(np.arange(count, dtype=np.int32).reshape(window.sizes))
    return _scattered(
        b,
        x.shape,
        window,
        [first, numbers, dy],
        lambda f, k, g: scalar.select(scalar.compare(CompareOp.EQ, f, k), g, 0),
    )


def average_pool_gradient(
    b: Builder, shape: Sequence[int], dy: Value, window: Window, counted: Window | None = None
) -> Value:
    """Return the gradient of ``average_pool``; ``shape``: of the data, ``counted``: as there."""
    counts = b.constant(_counts(window, counted, shape[2:]).astype(dy.type.dtype))
    share = mapped(b, scalar.divide, dy, expanded(counts, dy.shape), hint="share")
    return _scattered(b, shape, window, [share], lambda g: g)


def _scattered(
    b: Builder, shape: Sequence[int], window: Window, values: Sequence[Value], function: Function
) -> Value:
    """Add ``function`` of values at positions to the elements under the window."""
    whole = Value("", ElementType.INT32, tuple(shape), iterators(len(shape)))
    domain, write, at = _domain(window, whole)
    own = iterators(len(domain))[2 + window.rank :]
    terms = [Term(v, own if v.rank == window.rank and v.shape == window.sizes else at) for v in values]
    full = [n + lo + hi for n, lo, hi in zip(shape[2:], window.before, window.after, strict=True)]
    result = b.statement(domain, terms, (*shape[:2], *full), write, function, Combine.ADD, "scattered")
    for k, size in enumerate(shape[2:]):
        result = sliced(result, 2 + k, window.before[k], 1, size)
    return result


def flat_positions(
    b: Builder, first: Value, window: Window, shape: Sequence[int], *, column_major: bool
) -> Value:
    """Return the position of each first maximum in the whole data, from its number in the window.

    ``shape``: of the data. ``column_major``: the first spatial axis is the fastest.
    """
    spatial = shape[2:]
    strides = [int(np.prod(spatial[k + 1 :])) for k in range(len(spatial))]
    if column_major:
        strides = [int(np.prod(spatial[:k])) for k in range(len(spatial))]
    offsets = np.zeros(window.sizes, np.int64)
    for place in np.ndindex(*window.sizes):
        offsets[place] = sum(d * q * s for d, q, s in zip(window.dilations, place, strides, strict=True))
    starts = np.zeros(window.positions(spatial), np.int64)
    for k, stride in enumerate(strides):
        along = (np.arange(starts.shape[k]) * window.strides[k] - window.before[k]) * stride
        starts = starts + along.reshape([-1 if j == k else 1 for j in range(window.rank)])
    planes = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape[0], shape[1]) * int(
        np.prod(spatial)
    )
    base = b.constant(planes.reshape(*planes.shape, *(1,) * window.rank) + starts)
    table = b.constant(offsets.reshape(-1))
    inside = chosen(b, table, 0, first, "offset")
    return mapped(b, scalar.add, inside, base)


def maxima_of_parts(b: Builder, x: Value, parts: Sequence[NDArray]) -> Value:
    """Return ``y[n][c][o] max= parts[o][i] ? x[n][c][i] : lowest``, axis after axis.

    ``parts``: for each spatial axis truth values ``[o][i]``, the elements that a result looks at.
    """
    for k, seen in enumerate(parts):
        places = iterators(x.rank + 1)
        own, i = places[:-1], places[-1]
        at = tuple(i if a == 2 + k else own[a] for a in range(x.rank))
        least = x.type.lowest

        def part(inside: Expression, v: Expression, least: float = least) -> Expression:
            return scalar.select(inside, v, scalar.number(least, v.type))

        shape = [seen.shape[0] if a == 2 + k else n for a, n in enumerate(x.shape)]
        terms = [Term(b.constant(seen), (own[2 + k], i)), Term(x, at)]
        hint = "" if k == len(parts) - 1 else f"axis{k}"
        x = b.statement([*shape, seen.shape[1]], terms, shape, own, part, Combine.MAXIMUM, hint)
    return x


def places_in_parts(
    b: Builder, x: Value, maxima: Value, parts: Sequence[NDArray], *, last_nan: bool = False
) -> Value:
    """Return where the first maximum of each part is in the plane of its channel (NaN: ``first_maximum``)."""
    rank = len(parts)
    axes = iterators(2 + 2 * rank)
    o, i = axes[2 : 2 + rank], axes[2 + rank :]
    plane = prod(x.shape[2:])
    numbers = b.constant(np.arange(plane, dtype=np.int64).reshape(x.shape[2:]))

    def place(number: Expression, v: Expression, m: Expression, *seen: Expression) -> Expression:
        found = scalar.select(is_extreme(v, m), _marked(v, number, last_nan), plane)
        for inside in seen:
            found = scalar.select(inside, found, scalar.number(plane, number.type))
        return found

    terms = [Term(numbers, i), Term(x, (*axes[:2], *i)), Term(maxima, axes[: 2 + rank])]
    terms += [Term(b.constant(seen), (p, q)) for seen, p, q in zip(parts, o, i, strict=True)]
    domain = (*maxima.shape, *x.shape[2:])
    first = b.statement(domain, terms, maxima.shape, axes[: 2 + rank], place, Combine.MINIMUM, "first")
    return _unmarked(b, first, x.type, last_nan)


def unpooled(
    b: Builder, maxima: Value, places: Value, shape: Sequence[int], combine: Combine | None = None
) -> Value:
    """Return data of a ``shape`` with maxima at their places in the plane of their channel, elsewhere 0.

    Of several for one place the last counts, or they are combined.
    """
    planes = (prod(maxima.shape[:2]), prod(maxima.shape[2:]))
    refuse_if(
        maxima.shape != places.shape or tuple(shape[:2]) != maxima.shape[:2],
        f"places {list(places.shape)} of maxima {list(maxima.shape)}",
    )
    values, positions = (reshaped(b, v, planes) for v in (maxima, places))
    zeros = filled(b, (planes[0], prod(shape[2:])), 0, maxima.type)
    return reshaped(b, elements_updated(b, zeros, 1, positions, values, combine), shape)


def global_window(shape: Sequence[int]) -> Window:
    """Return the window that covers all of the spatial axes."""
    rank = len(shape)
    return Window(tuple(shape), (1,) * rank, (1,) * rank, (0,) * rank, (0,) * rank)
