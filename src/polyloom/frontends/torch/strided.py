"""``as_strided`` of a running PyTorch: the same elements under other strides, as permutations and a view."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Shape = tuple[int, ...]


def as_views(
    sizes: Sequence[int], strides: Sequence[int], new_sizes: Sequence[int], new_strides: Sequence[int]
) -> tuple[Shape, Shape, Shape] | None:
    """Return dimensions in the order of memory, the new sizes in that order, and the order back.

    None where one of both has gaps in memory, or elements twice: then it is no view by shapes.
    """
    before, after = in_memory(sizes, strides), in_memory(new_sizes, new_strides)
    if before is None or after is None or prod(sizes) != prod(new_sizes):
        return None
    back = tuple(after.index(dim) for dim in range(len(after)))
    return before, tuple(new_sizes[dim] for dim in after), back


def in_memory(sizes: Sequence[int], strides: Sequence[int]) -> Shape | None:
    """Return dimensions from the slowest to the fastest where they fill memory without gaps, else None.

    What a dimension of one element has as its stride does not matter.
    """
    single = [dim for dim, size in enumerate(sizes) if size == 1]
    others = [dim for dim, size in enumerate(sizes) if size != 1]
    order = sorted(others, key=lambda dim: -strides[dim])
    step = 1
    for dim in reversed(order):
        if strides[dim] != step:
            return None
        step *= sizes[dim]
    return (*single, *order)
