"""The domain of an md_hom in boxes, and tensors seen through an access on a box.

A box has one range per dimension; an array that belongs to a box has one axis per dimension, so that
everything that is read, computed and written on a box lines up without further thought.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.host import Index, View
from polyloom.ir.order import Rows, WalkedDimension, loops

NDArray = npt.NDArray[Any]
Box = tuple[range, ...]

LARGEST_BOX = 2**18
"""Points of a box at most: bounds the memory of temporaries, and keeps them in the cache."""

LONGEST_RUN = 2**14
"""Points up to which a box also takes several values of a reduced dimension."""


@dataclass(frozen=True)
class Step:
    """A box, and the dimension along which its points are combined one after another (None: none)."""

    box: Box
    run: int | None

    @property
    def written(self) -> Box:
        """The box without the dimension of the run: one point of it stands for all."""
        return tuple(r[:1] if k == self.run else r for k, r in enumerate(self.box))


def steps(whole: Box, rows: Rows) -> Iterator[Step]:
    """Yield boxes that cover ``whole`` once, in an order that keeps the order of the terms.

    ``rows``: of each index of what is written, the coefficients of the dimensions.
    """
    walked = loops([len(r) for r in whole], rows)
    fixed = {loop.dimension for loop in walked}
    chunked = _chunks(whole, fixed)
    run = _run(rows, walked)
    length = max(1, LONGEST_RUN // max(1, prod(map(len, (w[0] for w in chunked)))))
    values = [_values(whole, loop, length if loop.dimension == run else 1) for loop in walked]
    for point in product(*values):
        at = {loop.dimension: r for loop, r in zip(walked, point, strict=True)}
        for chunk in product(*chunked):
            yield Step(tuple(at.get(k, r) for k, r in enumerate(chunk)), run)


def _chunks(whole: Box, fixed: set[int]) -> list[list[range]]:
    """Cut the ranges of the dimensions that are taken as a whole, the outer ones first."""
    room = LARGEST_BOX
    chunks: list[list[range]] = []
    for k in reversed(range(len(whole))):
        size = 1 if k in fixed else max(1, min(len(whole[k]), room))
        room //= size
        chunks.append([range(1)] if k in fixed else cut(whole[k], size))
    return chunks[::-1]


def cut(whole: range, size: int) -> list[range]:
    """Return a range in parts of a size, the last one may be shorter."""
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def _run(rows: Rows, walked: Sequence[WalkedDimension]) -> int | None:
    """Return the innermost loop if no index of the write uses it."""
    if not walked or any(row[walked[-1].dimension] for row in rows):
        return None
    return walked[-1].dimension


def _values(whole: Box, loop: WalkedDimension, length: int) -> list[range]:
    pieces = cut(whole[loop.dimension], length)
    return pieces[::-1] if loop.backwards else pieces


def index_values(index: Index, box: Box) -> NDArray:
    """Return the index at the points of a box, broadcast where it does not vary (int64)."""
    total: NDArray = np.full((1,) * len(box), index.constant, dtype=np.int64)
    for k, coefficient in enumerate(index.coefficients):
        if coefficient:
            total = total + coefficient * iterator_values(k, box)
    return total


def iterator_values(dimension: int, box: Box) -> NDArray:
    """Return the values of one iterator on a box, along its axis (int64)."""
    values = np.arange(box[dimension].start, box[dimension].stop, dtype=np.int64)
    return values.reshape([-1 if k == dimension else 1 for k in range(len(box))])


def is_inside(access: View, shape: Sequence[int], box: Box) -> bool:
    """Tell whether every point of a box accesses an element of the tensor."""
    for index, size in zip(access.affine, shape, strict=True):
        ends = [(c * r.start, c * (r.stop - 1)) for c, r in zip(index.coefficients, box, strict=True)]
        if index.constant + sum(map(min, ends)) < 0 or index.constant + sum(map(max, ends)) >= size:
            return False
    return True


def view(array: NDArray, access: View, box: Box) -> NDArray:
    """Return the elements that the points of a box access, without copying; all must exist.

    ``array`` is C-contiguous. NumPy refuses a view that leaves the array.
    """
    pairs = list(zip(access.affine, array.strides, strict=True))
    offset = sum(_at_start(index, box) * stride for index, stride in pairs)
    strides = tuple(sum(i.coefficients[k] * stride for i, stride in pairs) for k in range(len(box)))
    return np.ndarray(tuple(map(len, box)), array.dtype, array.data, offset, strides)


def _at_start(index: Index, box: Box) -> int:
    return index.constant + sum(c * r.start for c, r in zip(index.coefficients, box, strict=True))


def gather(array: NDArray, access: View, box: Box) -> NDArray:
    """Return a copy of what a box accesses; where no element exists, the nearest one."""
    pairs = zip(access.affine, array.shape, strict=True)
    places = tuple(np.clip(index_values(i, box), 0, size - 1) for i, size in pairs)
    return np.broadcast_to(array[places], tuple(map(len, box)))


def read(array: NDArray, access: View, box: Box) -> NDArray:
    """Return what the points of a box read; points that a guard excludes may read anything."""
    return view(array, access, box) if is_inside(access, array.shape, box) else gather(array, access, box)
