"""Transforms and windows: Fourier matrices and other constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.core import (
    Builder,
    Context,
    Table,
    Term,
    Value,
    axis,
    check_constant,
    concatenated,
    einsum,
    iterators,
    mapped,
    only,
    padded,
    refuse_if,
    scalar,
    selected,
    sliced,
    stacked,
    unsqueezed,
)
from polyloom.frontends.onnx.operations.elementwise import type_of

NDArray = npt.NDArray[Any]


def fourier(
    b: Builder, re: Value, im: Value | None, at: int, length: int, *, inverse: bool
) -> tuple[Value, Value]:
    """Return the Fourier transform along an axis, by products with the matrices of cosines and sines.

    Data shorter than ``length`` are padded with zeros, longer ones cut.
    """
    check_constant([length, length], 8)
    kind = re.type
    numbers = np.outer(np.arange(length), np.arange(length)) % length
    angles = (2 if inverse else -2) * np.pi * numbers / length
    share = 1 / length if inverse else 1.0
    cosines = b.constant((np.cos(angles) * share).astype(kind.dtype))
    sines = b.constant((np.sin(angles) * share).astype(kind.dtype))
    re, im = _fitted(b, re, at, length), None if im is None else _fitted(b, im, at, length)
    re_cos, re_sin = (_along(b, re, at, m) for m in (cosines, sines))
    if im is None:
        return re_cos, re_sin
    im_cos, im_sin = (_along(b, im, at, m) for m in (cosines, sines))
    real = mapped(b, scalar.subtract, re_cos, im_sin, hint="real")
    return real, mapped(b, scalar.add, re_sin, im_cos, hint="imaginary")


def _fitted(b: Builder, x: Value, at: int, length: int) -> Value:
    after = [length - n if k == at else 0 for k, n in enumerate(x.shape)]
    return padded(b, x, [0] * x.rank, after)


def _along(b: Builder, x: Value, at: int, matrix: Value) -> Value:
    labels = "".join(chr(ord("A") + k) for k in range(x.rank))
    output = labels.replace(labels[at], "z")
    return einsum(b, [labels, f"{labels[at]}z"], output, [x, matrix], hint="transform")


def _dft(c: Context) -> Sequence[Value]:
    b, x = c.b, c.input()
    at = axis(c.whole(2, "its axis", -2), x.rank) if c.version >= 20 else c.axis("axis", x.rank, 1)
    inverse, onesided = bool(c.integer("inverse", 0)), bool(c.integer("onesided", 0))
    refuse_if(x.shape[-1] not in (1, 2) or at == x.rank - 1, f"the shape {list(x.shape)}, axis {at}")
    half = inverse and onesided
    length = c.whole(1, "its length", 2 * (x.shape[at] - 1) if half else x.shape[at])
    re = selected(x, x.rank - 1, 0)
    im = selected(x, x.rank - 1, 1) if x.shape[-1] == 2 else None
    if half:
        re, im = _mirrored(b, re, im, at, length)
        return only(unsqueezed(fourier(b, re, im, at, length, inverse=True)[0], [x.rank - 1]))
    real, imaginary = fourier(b, re, im, at, length, inverse=inverse)
    if onesided:
        count = length // 2 + 1
        real, imaginary = (sliced(v, at, 0, 1, count) for v in (real, imaginary))
    return only(stacked(b, [real, imaginary], x.rank - 1))


def _mirrored(b: Builder, re: Value, im: Value | None, at: int, length: int) -> tuple[Value, Value | None]:
    """Return a whole spectrum from the first half of that of real data."""
    count = length // 2 + 1
    re, im = _fitted(b, re, at, count), None if im is None else _fitted(b, im, at, count)
    rest = length - count
    parts = [re] if rest < 1 else [re, sliced(re, at, rest, -1, rest)]
    if im is None:
        return concatenated(b, parts, at), None
    back = None if rest < 1 else mapped(b, scalar.negate, sliced(im, at, rest, -1, rest), hint="conjugate")
    return concatenated(b, parts, at), concatenated(b, [im] if back is None else [im, back], at)


def _stft(c: Context) -> Sequence[Value]:
    """STFT: frames as a view with overlapping access, times the window, transformed."""
    b, x = c.b, c.input()
    step = c.whole(1, "its step")
    window = c.optional(2)
    length = c.whole(3, "its frames' length", (x if window is None else window).shape[window is None])
    refuse_if(
        x.rank != 3 or x.shape[2] not in (1, 2) or step < 1 or not 1 <= length <= x.shape[1],
        f"frames of {length} of the shape {list(x.shape)}",
    )
    frames = 1 + (x.shape[1] - length) // step
    parts = [_framed(b, selected(x, 2, k), frames, step, length, window) for k in range(x.shape[2])]
    im = parts[1] if len(parts) == 2 else None
    real, imaginary = fourier(b, parts[0], im, 2, length, inverse=False)
    if c.integer("onesided", 1) and im is None:
        real, imaginary = (sliced(v, 2, 0, 1, length // 2 + 1) for v in (real, imaginary))
    return only(stacked(b, [real, imaginary], 3))


def _framed(b: Builder, x: Value, frames: int, step: int, length: int, window: Value | None) -> Value:
    n, f, k = iterators(3)
    terms = [Term(x, (n, step * f + k))]
    if window is not None:
        terms.append(Term(window, (k,)))
    shape = (x.shape[0], frames, length)
    function = (lambda v: v) if window is None else scalar.multiply
    return b.statement(shape, terms, shape, (n, f, k), function, hint="frames")


def _window(c: Context, make: Callable[[NDArray, int], NDArray]) -> Sequence[Value]:
    size = c.whole(0, "its size")
    check_constant([size], 8)
    kind = type_of(c.integer("output_datatype", 1))
    period = size if c.integer("periodic", 1) else max(1, size - 1)
    return only(c.b.constant(make(np.arange(size) * (2 * np.pi / period), size).astype(kind.dtype)))


def _mel(c: Context) -> Sequence[Value]:
    """MelWeightMatrix: triangles over the bins of a spectrum, between edges evenly spaced in mel."""
    bins, length, rate = (c.whole(k, "its size") for k in range(3))
    low, high = (float(c.one(k, "its edge")) for k in (3, 4))
    count = length // 2 + 1
    check_constant([count, bins + 2], 8)
    mel = 2595 * np.log10(1 + np.asarray([low, high]) / 700)
    edges = np.arange(bins + 2) * ((mel[1] - mel[0]) / (bins + 2)) + mel[0]
    places = np.floor((length + 1) * (700 * (10 ** (edges / 2595) - 1)) / rate).astype(int)
    found = np.zeros((count, bins))
    for k in range(bins):
        lower, middle, upper = places[k : k + 3]
        rising = np.arange(lower, middle + 1) if middle > lower else np.asarray([middle])
        found[rising, k] = (rising - lower) / (middle - lower) if middle > lower else 1.0
        falling = np.arange(middle, upper)
        found[falling, k] = (upper - falling) / max(1, upper - middle)
    kind = type_of(c.integer("output_datatype", 1))
    return only(c.b.constant(found.astype(kind.dtype)))


OPERATIONS: Table = {
    "DFT": _dft,
    "STFT": _stft,
    "HannWindow": partial(_window, make=lambda a, n: 0.5 - 0.5 * np.cos(a)),
    "HammingWindow": partial(_window, make=lambda a, n: 25 / 46 - 21 / 46 * np.cos(a)),
    "BlackmanWindow": partial(_window, make=lambda a, n: 0.42 - 0.5 * np.cos(a) + 0.08 * np.cos(2 * a)),
    "MelWeightMatrix": _mel,
}
