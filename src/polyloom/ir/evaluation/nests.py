"""The meaning of a nest, in NumPy: its sequential body, for all points of its parallel dimensions at once.

A few points run one after another (``sequential_nests``). Else every parallel point is a *lane*; integers
that depend on the point are arrays with an element per lane. A loop goes on with the lanes whose condition
still holds, a branch with those it chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.arithmetic import value
from polyloom.ir.evaluation.launches import assign, check_inside
from polyloom.ir.evaluation.sequential_nests import serial_function
from polyloom.ir.evaluation.uninitialised import garbage
from polyloom.ir.expressions import Expression
from polyloom.ir.host import Assignment, Index, Nest, View, expressions_of
from polyloom.ir.integers import integer, values_of
from polyloom.ir.procedures.variables import goes_by_points
from polyloom.polyhedra.loops.tree import Branch, Instance, Loop, Part, Tree

NDArray = npt.NDArray[Any]
Names = Mapping[str, Any]
"""Parameters and iterators to integers, or to one integer per lane."""


FEW_LANES = 24
"""Points of the parallel dimensions up to which they are carried out one after another."""


def run_nest(node: Nest, arrays: Mapping[str, NDArray], names: Mapping[str, int]) -> None:
    """Carry out a nest: buffers among ``arrays`` change. Errors: IndexError outside of a buffer."""
    extents = tuple(max(0, integer(e, names)) for e in node.extents)
    count = prod(extents)
    if 0 < count <= FEW_LANES or (count and goes_by_points(*expressions_of(node))):
        _one_by_one(node, arrays, names, extents)
    elif count:
        _together(node, arrays, names, extents)


def _one_by_one(
    node: Nest, arrays: Mapping[str, NDArray], names: Mapping[str, int], extents: tuple[int, ...]
) -> None:
    run = serial_function(node)
    for point in product(*map(range, extents)):
        run({**arrays, **private_arrays(node, names, ())}, names, point)


def private_arrays(node: Nest, names: Mapping[str, int], lanes: tuple[int, ...]) -> dict[str, NDArray]:
    """Return the private buffers of a nest, with an axis of lanes in front."""
    shapes = {b.name: (*lanes, *(max(0, integer(n, names)) for n in b.shape)) for b in node.private}
    return {b.name: garbage(shapes[b.name], b.type) for b in node.private}


def _together(
    node: Nest, arrays: Mapping[str, NDArray], names: Mapping[str, int], extents: tuple[int, ...]
) -> None:
    private = private_arrays(node, names, (prod(extents),))
    NestRun(node, {**arrays, **private}, frozenset(private), dict(names)).all_lanes(extents)


@dataclass(frozen=True, eq=False)
class NestRun:
    """The body of a nest at work on lanes; ``private`` buffers among ``arrays`` have an axis of lanes."""

    node: Nest
    arrays: Mapping[str, NDArray]
    private: frozenset[str]
    names: Mapping[str, int]

    def all_lanes(self, extents: tuple[int, ...]) -> None:
        """Carry out the body at all points of a rectangle."""
        count = prod(extents)
        lanes = np.indices(extents, dtype=np.int64).reshape(len(extents), count)
        self.tree(self.node.body, dict(zip(self.node.iterators, lanes, strict=True)), np.arange(count))

    def tree(self, tree: Tree, points: Names, lanes: NDArray) -> None:
        """Carry out a part of the body at some lanes."""
        for node in tree:
            match node:
                case Loop():
                    self._loop(node, points, lanes)
                case Branch():
                    holds = self._integers(node.condition, points, lanes).astype(np.bool_)
                    self._some(node.body, points, lanes, holds)
                    self._some(node.otherwise, points, lanes, ~holds)
                case Instance():
                    self._instance(node, points, lanes)

    def _integers(self, expression: Any, points: Names, lanes: NDArray) -> NDArray:
        return np.broadcast_to(values_of(expression, {**self.names, **points}), lanes.shape)

    def _some(self, tree: Tree, points: Names, lanes: NDArray, chosen: NDArray) -> None:
        if chosen.all():
            self.tree(tree, points, lanes)
        elif chosen.any():
            self.tree(tree, {name: v[chosen] for name, v in points.items()}, lanes[chosen])

    def _loop(self, loop: Loop[Part], points: Names, lanes: NDArray) -> None:
        inner = {**points, loop.iterator: self._integers(loop.start, points, lanes)}
        while lanes.size:
            goes_on = self._integers(loop.condition, inner, lanes).astype(np.bool_)
            if not goes_on.all():
                inner = {name: v[goes_on] for name, v in inner.items()}
                lanes = lanes[goes_on]
            if lanes.size:
                self.tree(loop.body, inner, lanes)
                step = self._integers(loop.step, inner, lanes)
                inner = {**inner, loop.iterator: inner[loop.iterator] + step}

    def _instance(self, instance: Instance, points: Names, lanes: NDArray) -> None:
        assignment = next(a for a in self.node.assignments if a.name == instance.statement)
        coordinates = [self._integers(a, points, lanes) for a in instance.arguments]
        self.step(NestStep(self, assignment, coordinates, points, lanes))

    def step(self, step: NestStep) -> None:
        """Carry out an assignment at some lanes."""
        step.run()


class NestStep(Sequence[NDArray]):
    """An assignment at some lanes; as a sequence, what its views read there."""

    def __init__(
        self, run: NestRun, assignment: Assignment, coordinates: list[NDArray], points: Names, lanes: NDArray
    ) -> None:
        self.within = run
        self.assignment = assignment
        self.coordinates = coordinates
        self.points = points
        self.lanes = lanes
        self.found: dict[int, NDArray] = {}

    def __len__(self) -> int:
        return len(self.assignment.reads)

    def __getitem__(self, position: Any) -> Any:
        if position not in self.found:
            view = self.assignment.reads[position]
            array = self.within.arrays[view.buffer]
            places = zip(self.places(view), array.shape, strict=True)
            self.found[position] = array[tuple(np.clip(p, 0, max(0, n - 1)) for p, n in places)]
        return self.found[position]

    def run(self) -> None:
        """Store the value where the condition holds."""
        target, condition = self.assignment.target, self.assignment.condition
        values = self._values(self.assignment.value)
        where = np.ones(self.lanes.shape, np.bool_)
        if condition is not None:
            where = self._values(condition).astype(np.bool_)
        array = self.within.arrays[target.buffer]
        places = tuple(p[where] for p in self.places(target))
        check_inside(self.assignment.name, target.buffer, array.shape, places)
        assign(array, places, values[where])

    def _values(self, expression: Expression) -> NDArray:
        found = value(expression, self, self.coordinates.__getitem__, self.within.names)
        return np.broadcast_to(found, self.lanes.shape)

    def places(self, view: View) -> tuple[NDArray, ...]:
        """Return the index of each dimension of a buffer at every lane."""
        own = (self.lanes,) if view.buffer in self.within.private else ()
        return (*own, *(self._place(i) for i in view.indices))

    def _place(self, index: Index | Expression) -> NDArray:
        if not isinstance(index, Index):
            return self._values(index).astype(np.int64)
        total = self.within._integers(index.offset, self.points, self.lanes).astype(np.int64)
        for coefficient, coordinate in zip(index.coefficients, self.coordinates, strict=True):
            total = total + coefficient * coordinate
        return total
