"""One launch of an md_hom: its views, scalar functions and conditions on boxes of points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.arithmetic import value
from polyloom.ir.evaluation.boxes import Box, is_inside, iterator_values, read
from polyloom.ir.evaluation.boxes import view as elements
from polyloom.ir.evaluation.combining import Mask, Partial
from polyloom.ir.expressions import Expression
from polyloom.ir.host import Combiner, Index, MdHom, Order, View
from polyloom.ir.integers import integer, values_of

NDArray = npt.NDArray[Any]


class Reads(Sequence[NDArray]):
    """What the views of an md_hom read on a box, each worked out when it is asked for."""

    def __init__(self, launch: Launch, box: Box, results: Sequence[NDArray] = ()) -> None:
        self.launch = launch
        self.box = box
        self.results = results
        self.found: dict[int, NDArray] = {}

    def __len__(self) -> int:
        return len(self.launch.node.inputs) + len(self.results)

    @overload
    def __getitem__(self, position: int) -> NDArray: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[NDArray]: ...
    def __getitem__(self, position: int | slice) -> NDArray | Sequence[NDArray]:
        if isinstance(position, slice):
            return [self[k] for k in range(*position.indices(len(self)))]
        inputs = self.launch.node.inputs
        if position >= len(inputs):
            return self.results[position - len(inputs)]
        if position not in self.found:
            self.found[position] = self.launch.read(inputs[position], self)
        return self.found[position]


@dataclass(frozen=True, eq=False)
class Launch:
    """An md_hom, the buffers it works on, and the values of parameters and host iterators."""

    node: MdHom
    arrays: Mapping[str, NDArray]
    names: Mapping[str, int]

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """The extents of the domain."""
        return tuple(max(0, integer(e, self.names)) for e in self.node.extents)

    def dimensions(self, *orders: Order) -> tuple[int, ...]:
        """Return the dimensions whose operator has one of the orders."""
        return tuple(k for k, o in enumerate(self.node.combine) if o.order in orders)

    @property
    def outermost(self) -> Combiner | None:
        """The combiner of the first dimension that has one."""
        return next((o.combiner for o in self.node.combine if o.combiner is not None), None)

    def values(self, expression: Expression, reads: Reads) -> NDArray:
        """Return the values of a scalar function on the box of ``reads``."""
        box = reads.box
        found = value(expression, reads, lambda k: iterator_values(k, box), self.names)
        return np.broadcast_to(found, tuple(map(len, box)))

    def read(self, view: View, reads: Reads) -> NDArray:
        """Return the elements of a view; where a point has none, the nearest one."""
        array = self.arrays[view.buffer]
        access = self.affine(view)
        if array.size == 0:
            return np.zeros(tuple(map(len, reads.box)), array.dtype)
        if access is not None:
            return read(array, access, reads.box)
        places = zip(self.places(view, reads), array.shape, strict=True)
        found: NDArray = array[tuple(np.clip(p, 0, n - 1) for p, n in places)]
        return found

    def affine(self, view: View) -> View | None:
        """Return a view as an affine access; None where an index is computed."""
        indices = [self._affine_index(i) for i in view.indices if isinstance(i, Index)]
        return View(view.buffer, tuple(indices)) if len(indices) == len(view.indices) else None

    def _affine_index(self, index: Index) -> Index:
        return Index.of(index.coefficients, integer(index.offset, self.names))

    def apart(self, view: View, box: Box) -> View | None:
        """Return the affine access by which the points of a box have an element each; None where it is none.

        All elements exist, and every dimension in which points differ is alone in an index.
        """
        access = self.affine(view)
        if access is None or not is_inside(access, self.arrays[view.buffer].shape, box):
            return None
        moving = {k for k, values in enumerate(box) if len(values) > 1}
        used = [{k for k in moving if index.coefficients[k]} for index in access.affine]
        return access if set().union(*used) == moving and all(len(u) <= 1 for u in used) else None

    def places(self, view: View, reads: Reads) -> tuple[NDArray, ...]:
        """Return the index of each dimension of the buffer at every point of a box."""
        return tuple(self._place(index, reads) for index in view.indices)

    def _place(self, index: Index | Expression, reads: Reads) -> NDArray:
        if not isinstance(index, Index):
            return self.values(index, reads).astype(np.int64)
        box = reads.box
        total = np.full(tuple(map(len, box)), integer(index.offset, self.names), dtype=np.int64)
        for k, coefficient in enumerate(index.coefficients):
            if coefficient:
                total += coefficient * iterator_values(k, box)
        return total

    def holds(self, condition: Any, box: Box) -> Mask:
        """Return where a condition holds on a box; everywhere for None."""
        shape = tuple(map(len, box))
        if condition is None:
            return np.ones(shape, np.bool_)
        points = {name: iterator_values(k, box) for k, name in enumerate(self.node.iterators)}
        found = values_of(condition, {**self.names, **points})
        return np.broadcast_to(found.astype(np.bool_), shape)


def written_places(launch: Launch, view: View, reads: Reads, where: Mask) -> tuple[NDArray, ...]:
    """Return which elements the points of a box write. Errors: IndexError where one does not exist."""
    places = tuple(p[where] for p in launch.places(view, reads))
    check_inside(launch.node.name, view.buffer, launch.arrays[view.buffer].shape, places)
    return places


def store(launch: Launch, output: View, box: Box, values: NDArray, where: Mask) -> None:
    """Write what the points of a box have for an output. Errors: IndexError where no element exists."""
    array, access = launch.arrays[output.buffer], launch.apart(output, box)
    if access is not None:
        np.copyto(elements(array, access, box), values, where=where)
        return
    places = written_places(launch, output, Reads(launch, box), where)
    assign(array, places, values[where])


def assign(array: NDArray, places: tuple[NDArray, ...], values: NDArray) -> None:
    """Write values to elements, the last one where they are of one scalar."""
    if places:
        array[places] = values
    elif values.size:
        array[...] = values[-1]


def check_inside(who: str, buffer: str, shape: Sequence[int], places: Sequence[NDArray]) -> None:
    """Raise IndexError where an element does not exist."""
    for place, n in zip(places, shape, strict=True):
        if place.size and (place.min() < 0 or place.max() >= n):
            outside = place.min() if place.min() < 0 else place.max()
            raise IndexError(f"{who} writes {buffer} at {outside}, of {n} elements")


def terms(launch: Launch, box: Box) -> Partial:
    """Return the scalar function's values on a box, and where the guard holds."""
    present = launch.holds(launch.node.guard, box)
    if not present.any():
        return Partial(tuple(np.zeros(present.shape, t.type.dtype) for t in launch.node.terms), present)
    reads = Reads(launch, box)
    return Partial(tuple(launch.values(t, reads) for t in launch.node.terms), present)
