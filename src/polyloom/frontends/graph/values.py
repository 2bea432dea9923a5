"""Values: tensors seen through affine views, and lists of them.

Views are composed here, so that no statement has to copy.

t = transpose(x);  y[i][j] = relu(t[i][j])      becomes      y[i][j] = relu(x[j][i])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from polyloom.frontends.graph.linear import Formula, Linear, iterators, linear
from polyloom.frontends.graph.refusal import Refused
from polyloom.ir.types import ElementType

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Value:
    """Element ``(i0, i1, ...)`` is the tensor's element at ``indices``, formulas of ``i0, i1, ...``.

    ``type`` may be BOOL, whose tensors hold 0 and 1 as uint8.
    """

    tensor: str
    type: ElementType
    shape: Shape
    indices: tuple[Linear, ...]

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def at(self, places: Sequence[Formula]) -> tuple[Linear, ...]:
        """Return the tensor's indices of the element at ``places``."""
        chosen = [linear(p) for p in places]
        return tuple(index.at(chosen) for index in self.indices)


def whole(tensor: str, kind: ElementType, shape: Sequence[int]) -> Value:
    """Return a tensor as it is."""
    return Value(tensor, kind, tuple(shape), iterators(len(shape)))


def is_whole(value: Value) -> bool:
    """Tell whether a value's indices are its iterators, one by one."""
    return value.indices == iterators(value.rank)


def reindexed(value: Value, shape: Sequence[int], places: Sequence[Formula]) -> Value:
    """Return the value whose element at ``i`` is that of ``value`` at ``places``, formulas of ``i``."""
    return replace(value, shape=tuple(shape), indices=value.at(places))


def transposed(value: Value, order: Sequence[int]) -> Value:
    """Return the value with its dimensions in another order: dimension k was ``order[k]``."""
    if sorted(order) != list(range(value.rank)):
        raise Refused(f"the order {list(order)} of {value.rank} axes")
    axes = iterators(value.rank)
    places = [axes[list(order).index(k)] for k in range(value.rank)]
    return reindexed(value, [value.shape[k] for k in order], places)


def expanded(value: Value, shape: Sequence[int]) -> Value:
    """Return the value broadcast to a shape, as NumPy does. Raises ``Refused`` where it does not fit."""
    if any(n not in (1, m) for n, m in zip(value.shape[::-1], shape[::-1], strict=False)):
        raise Refused(f"the shape {list(value.shape)} as {list(shape)}")
    if value.rank > len(shape):
        raise Refused(f"the shape {list(value.shape)} as {list(shape)}")
    lead = len(shape) - value.rank
    axes = iterators(len(shape))
    places = [axes[lead + k] if n == shape[lead + k] else 0 for k, n in enumerate(value.shape)]
    return reindexed(value, shape, places)


def sliced(value: Value, axis: int, start: int, step: int, length: int) -> Value:
    """Return ``length`` slices along an axis: those at ``start``, ``start + step``, ..."""
    if not 0 <= axis < value.rank:
        raise Refused(f"axis {axis} of the shape {list(value.shape)}")
    if length and not all(0 <= p < value.shape[axis] for p in (start, start + step * (length - 1))):
        raise Refused(f"{length} slices from {start} on of the {value.shape[axis]} of an axis")
    places: list[Formula] = list(iterators(value.rank))
    places[axis] = start + step * iterators(value.rank)[axis]
    shape = [length if k == axis else n for k, n in enumerate(value.shape)]
    return reindexed(value, shape, places)


def unsqueezed(value: Value, axes: Sequence[int]) -> Value:
    """Return the value with dimensions of size 1 at ``axes`` of the result. Raises ``Refused``."""
    rank = value.rank + len(axes)
    if len({*axes} & {*range(rank)}) != len(axes):
        raise Refused(f"new axes {list(axes)} of the shape {list(value.shape)}")
    kept = [k for k in range(rank) if k not in axes]
    new = iterators(rank)
    shape = [1] * rank
    for k, n in zip(kept, value.shape, strict=True):
        shape[k] = n
    return reindexed(value, shape, [new[k] for k in kept])


def squeezed(value: Value, axes: Sequence[int]) -> Value:
    """Return the value without dimensions ``axes``, each of size 1. Raises ``Refused``."""
    if any(not 0 <= k < value.rank or value.shape[k] != 1 for k in axes):
        raise Refused(f"axes {list(axes)} of the shape {list(value.shape)} are not all of size 1")
    kept = [k for k in range(value.rank) if k not in axes]
    new = dict(zip(kept, iterators(len(kept)), strict=True))
    return reindexed(value, [value.shape[k] for k in kept], [new.get(k, 0) for k in range(value.rank)])


def selected(value: Value, axis: int, position: int) -> Value:
    """Return the slice at one position of an axis, which goes."""
    return squeezed(sliced(value, axis, position, 1, 1), [axis])


def split(value: Value, axis: int, sizes: Sequence[int]) -> Value:
    """Return the value with an axis as several (the last is the fastest).

    Raises ``Refused`` where the sizes do not multiply to its length.
    """
    if not 0 <= axis < value.rank or prod(sizes) != value.shape[axis]:
        raise Refused(f"axis {axis} of the shape {list(value.shape)} as {list(sizes)}")
    count = len(sizes)
    new = iterators(value.rank + count - 1)
    places: list[Formula] = [*new[:axis], 0, *new[axis + count :]]
    total: Linear = Linear()
    for k, size in enumerate(sizes):
        total = size * total + new[axis + k]
    places[axis] = total
    shape = [*value.shape[:axis], *sizes, *value.shape[axis + 1 :]]
    return reindexed(value, shape, places)


def merged(value: Value, axis: int, count: int) -> Value | None:
    """Return the value with ``count`` axes from ``axis`` on as one; None where no affine view does it.

    It does where every index has them in the proportion of their sizes: ``x[6*i + 2*j + k]``.
    """
    sizes = value.shape[axis : axis + count]
    if count == 0:
        return unsqueezed(value, [axis])
    strides = [prod(sizes[k + 1 :]) for k in range(count)]
    indices = []
    for index in value.indices:
        found = _merged_index(index, axis, sizes, strides)
        if found is None:
            return None
        indices.append(found)
    shape = (*value.shape[:axis], prod(sizes), *value.shape[axis + count :])
    return replace(value, shape=shape, indices=tuple(indices))


def _merged_index(index: Linear, axis: int, sizes: Sequence[int], strides: Sequence[int]) -> Linear | None:
    terms = dict(index.terms)
    count = len(sizes)
    moving = [k for k in range(count) if sizes[k] > 1]
    factor = terms.get(axis + moving[-1], 0) if moving else 0
    if any(terms.get(axis + k, 0) != factor * strides[k] for k in moving):
        return None
    kept = {k if k < axis else k - count + 1: c for k, c in terms.items() if not axis <= k < axis + count}
    if factor:
        kept[axis] = factor
    return Linear(tuple(sorted(kept.items())), index.constant)


def blocks(old: Sequence[int], new: Sequence[int]) -> list[tuple[range, range]]:
    """Return the finest cut of two shapes of one size into runs of dimensions that multiply to the same.

    (4, 6, 5) and (2, 12, 5) have the blocks (4, 6) - (2, 12) and (5) - (5).
    """
    found = []
    i = j = 0
    while i < len(old) or j < len(new):
        start = i, j
        a = b = 1
        i, a = (i + 1, old[i]) if i < len(old) else (i, 1)
        j, b = (j + 1, new[j]) if j < len(new) else (j, 1)
        while a != b:
            if (a < b and i < len(old)) or j == len(new):
                a *= old[i]
                i += 1
            else:
                b *= new[j]
                j += 1
        found.append((range(start[0], i), range(start[1], j)))
    return found


@dataclass(frozen=True)
class ValueList:
    """Tensors by position, of a length known at import; None: one that nothing has written yet.

    ``type``, ``shape``: of the elements, None where the graph does not say.
    """

    items: tuple[Value | None, ...]
    type: ElementType | None = None
    shape: Shape | None = None

    def __len__(self) -> int:
        return len(self.items)

    def item(self, position: int) -> Value | None:
        """Return an element; None where it is not written. Raises ``Refused`` outside."""
        if not 0 <= position < len(self.items):
            raise Refused(f"element {position} of a list of {len(self.items)}")
        return self.items[position]

    def with_item(self, position: int, value: Value) -> ValueList:
        """Return the list with another element. Raises ``Refused`` outside."""
        self.item(position)
        return self.of([*self.items[:position], value, *self.items[position + 1 :]])

    def of(self, items: Sequence[Value | None]) -> ValueList:
        """Return a list of other elements."""
        return replace(self, items=tuple(items))

    def written(self) -> list[Value]:
        """Return the elements that are written."""
        return [v for v in self.items if v is not None]


Anything = Value | ValueList
