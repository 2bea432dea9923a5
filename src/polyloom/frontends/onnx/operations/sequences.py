"""Sequences of tensors whose lengths and positions are known: a program has their elements alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyloom.frontends.graph.core import (
    MOST_PARTS,
    Anything,
    Context,
    Table,
    Value,
    ValueList,
    axis,
    concatenated,
    refuse_if,
    split_parts,
    squeezed,
    stacked,
)


def _elements(c: Context) -> list[Value]:
    return c.listed().written()


def _place(c: Context, position: int, count: int, default: int) -> int:
    """Return a known place among ``count``, negative ones from the end. Raises ``Refused``."""
    return axis(c.whole(position, "its position", default), count)


def _element(c: Context) -> Sequence[Anything]:
    found = _elements(c)
    return [found[_place(c, 1, len(found), 0)]]


def _with_element(c: Context) -> Sequence[Anything]:
    """SequenceInsert: before an element; a negative place counts elements from the end, as Python's does."""
    found = _elements(c)
    count = len(found)
    at = c.whole(2, "its position", count)
    refuse_if(not -count <= at <= count, f"position {at} of {count}")
    at = at + count if at < 0 else at
    return [ValueList((*found[:at], c.input(1), *found[at:]))]


def _without_element(c: Context) -> Sequence[Anything]:
    found = _elements(c)
    at = _place(c, 1, len(found), -1)
    return [ValueList((*found[:at], *found[at + 1 :]))]


def _length(c: Context) -> Sequence[Anything]:
    return [c.b.constant(np.asarray(len(c.listed()), np.int64))]


def _joined(c: Context) -> Sequence[Anything]:
    """ConcatFromSequence, along an axis that is there or new."""
    parts = _elements(c)
    refuse_if(
        not parts or len({(p.type, p.rank) for p in parts}) != 1,
        "no parts, or parts of different types or ranks",
    )
    if c.integer("new_axis", 0):
        return [stacked(c.b, parts, c.axis("axis", parts[0].rank + 1))]
    return [concatenated(c.b, parts, c.axis("axis", parts[0].rank))]


def _split(c: Context) -> Sequence[Anything]:
    """SplitToSequence: parts of stated sizes, of one size, or slices, then without the axis if so wanted."""
    x, at = c.input(), c.axis("axis", c.input().rank, 0)
    stated = c.optional(1)
    if stated is not None and stated.rank:
        sizes = c.integers(1, "its sizes")
    else:
        sizes = _equal_sizes(x.shape[at], 1 if stated is None else c.whole(1, "its size"))
    parts = split_parts(x, at, sizes)
    if stated is None and not c.integer("keepdims", 1):
        parts = [squeezed(part, [at]) for part in parts]
    return [ValueList(tuple(parts))]


def _equal_sizes(size: int, each: int) -> list[int]:
    """Return parts of ``each`` elements, of which the last may be smaller. Raises ``Refused``."""
    refuse_if(each < 1 or size > each * MOST_PARTS, f"parts of {each} of {size} elements")
    return [min(each, size - start) for start in range(0, size, each)]


OPERATIONS: Table = {
    "SequenceConstruct": lambda c: [ValueList(tuple(c.inputs))],
    "SequenceEmpty": lambda c: [ValueList(())],
    "SequenceAt": _element,
    "SequenceInsert": _with_element,
    "SequenceErase": _without_element,
    "SequenceLength": _length,
    "ConcatFromSequence": _joined,
    "SplitToSequence": _split,
}
