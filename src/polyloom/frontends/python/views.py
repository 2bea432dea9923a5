"""Parts of arrays: ``a[i, 1:-1]``, ``a.T``, parts of parts, each as an index or a range in each dimension."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from polyloom.frontends.python import affine
from polyloom.frontends.python.affine import Affine
from polyloom.frontends.python.subscripts import is_of_data


@dataclass(frozen=True)
class Place:
    """An index; or the indices ``start + step * k`` for ``k`` from 0 to before ``length``.

    ``needs``: what has to hold wherever it is taken, in isl's notation: a negative end would count from the
    array's end, and one beyond it would be cut off.
    """

    start: Affine
    step: int = 1
    length: Affine | None = None
    needs: tuple[str, ...] = ()

    def at(self, k: Affine) -> Affine:
        """Return the index of the element ``k``."""
        return affine.plus(self.start, affine.times(self.step, k))

    def is_whole(self, extent: Affine) -> bool:
        """Return whether it is all of a dimension, in its order."""
        is_length = self.length is not None and self.length.text == extent.text
        return is_length and self.start.number == 0 and self.step == 1


@dataclass(frozen=True)
class Slices:
    """``a[i, 1:-1]``: an index or a slice for each dimension of an array.

    ``axes``: the dimension that each axis of it runs along; None: a new one of length 1.
    """

    array: str
    places: tuple[Place, ...]
    axes: tuple[int | None, ...]

    @property
    def lengths(self) -> tuple[Affine, ...]:
        """The extents of what it is."""
        return tuple(affine.number(1) if axis is None else self._length(axis) for axis in self.axes)

    def _length(self, axis: int) -> Affine:
        length = self.places[axis].length
        assert length is not None
        return length

    @property
    def needs(self) -> tuple[str, ...]:
        """What has to hold wherever it is taken."""
        return tuple(need for place in self.places for need in place.needs)

    @property
    def is_of_data(self) -> bool:
        """Whether a place is read from data."""
        return any(is_of_data(place.start.text) for place in self.places)

    @property
    def turned(self) -> Slices:
        """The same with its axes the other way round."""
        return replace(self, axes=self.axes[::-1])

    def is_all(self, extents: Sequence[Affine]) -> bool:
        """Return whether it is an array of these extents as it lies."""
        is_whole = all(p.is_whole(e) for p, e in zip(self.places, extents, strict=True))
        return is_whole and self.axes == tuple(range(len(extents)))


def whole(array: str, extents: Sequence[Affine]) -> Slices:
    """Return all of an array."""
    return Slices(array, tuple(Place(affine.number(0), 1, e) for e in extents), tuple(range(len(extents))))


def within(outer: Place, inner: Place) -> Place:
    """Return the part of a range that another one says in its indices.

    >>> within(Place(affine.number(1), 2, affine.number(5)), Place(affine.number(3))).start.number
    7
    """
    assert outer.length is not None
    last = inner.start if inner.length is None else _last(inner, inner.length)
    ends = (inner.start, last) if inner.step > 0 else (last, inner.start)
    inside = (f"0 <= {ends[0].text}", f"{ends[1].text} < {outer.length.text}")
    if inner.length is not None:
        inside = (f"{inner.length.text} = 0 or ({inside[0]} and {inside[1]})", f"{inner.length.text} >= 0")
    needs = (*outer.needs, *inner.needs, *inside)
    return Place(outer.at(inner.start), outer.step * inner.step, inner.length, needs)


def _last(place: Place, length: Affine) -> Affine:
    return place.at(affine.plus(length, affine.number(-1)))


def parts_for_axes(parts: Sequence[ast.expr], rank: int) -> list[ast.expr] | None:
    """Return a subscript's parts, one for each axis and new axis; None where there are too many."""
    rest = rank - sum(not is_new(part) and not _is_dots(part) for part in parts)
    dots = [k for k, part in enumerate(parts) if _is_dots(part)]
    if rest < 0 or len(dots) > 1:
        return None
    at = dots[0] if dots else len(parts)
    return [*parts[:at], *[ast.Slice()] * rest, *parts[at + 1 :]]


def is_new(part: ast.expr) -> bool:
    """Return whether a part of a subscript is ``None`` or ``np.newaxis``."""
    is_none = isinstance(part, ast.Constant) and part.value is None
    return is_none or (isinstance(part, ast.Attribute) and part.attr == "newaxis")


def _is_dots(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is Ellipsis
