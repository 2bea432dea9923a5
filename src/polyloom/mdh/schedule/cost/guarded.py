"""Which part of the boxes of points that loops go through the conditions of an md_hom leave.

    for i, for j:  if j >= i        boxes of 4 x 1 points:  some of their points are inside in half of them,
                                                            all of them in a few less

Loops begin and end where conditions say: a box without a point inside costs nothing, and one that is cut has
loops of its own for its points. The parts are those of a fixed sample of points, the same for all schedules.
Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from polyloom.ir.host import MdHom
from polyloom.ir.inequalities import conjuncts
from polyloom.mdh.tree.ranges import bound_of, not_negative
from polyloom.polyhedra.loops.tree import IntExpression, Name, linear_terms, names_in

Sizes = tuple[int, ...]
"""Points per dimension."""

SAMPLE = 256
"""Points that are looked at."""


@dataclass(frozen=True)
class Shares:
    """Parts of the boxes: those with a point inside, those that are inside as a whole."""

    some: float
    whole: float


EVERYWHERE = Shares(1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Guarded:
    """An md_hom's points under its conditions; those on other names than its iterators are left out.

    ``extents``: points per dimension.
    """

    hom: MdHom
    extents: Sizes

    def is_tested(self, order: Sequence[int]) -> bool:
        """Whether each point asks for a condition that is no bound of a loop; ``order``: of the loops."""
        names = [self.hom.iterators[d] for d in order]
        spoken = (c for c in conjuncts(self.hom.guard) if not names_in(c).isdisjoint(names))
        return any(bound_of(condition, names) is None for condition in spoken)

    def is_apart(self, order: Sequence[int], d: int) -> bool:
        """Return whether a loop further in than that of a dimension begins or ends by the dimension's points.

        Where its points are lanes of vectors, each has a part of that loop by itself.
        """
        names = [self.hom.iterators[k] for k in order]
        spoken = [c for c in self._conditions if self.hom.iterators[d] in names_in(c)]
        found = [bound_of(condition, names) for condition in spoken]
        return any(bound is not None and bound[0] != self.hom.iterators[d] for bound in found)

    def shares(self, box: Sizes) -> Shares:
        """Return the parts of all boxes of a size, counted by their points."""
        if not self._planes:
            return EVERYWHERE
        if box not in self._known:
            self._known[box] = self._counted(box)
        return self._known[box]

    @cached_property
    def _known(self) -> dict[Sizes, Shares]:
        return {}

    @cached_property
    def _conditions(self) -> tuple[IntExpression, ...]:
        return tuple(dict.fromkeys((*conjuncts(self.hom.guard), *conjuncts(self.hom.written))))

    @cached_property
    def _planes(self) -> list[tuple[int, list[int]]]:
        """Integers that are not negative inside: a constant, and a coefficient per dimension."""
        bounds = dict.fromkeys(bound for c in self._conditions for bound in not_negative(c) or ())
        return [plane for bound in bounds for plane in self._plane(bound)]

    def _plane(self, bound: IntExpression) -> Iterator[tuple[int, list[int]]]:
        terms, constant = linear_terms([(1, bound)])
        coefficients = [0] * len(self.extents)
        for factor, term in terms:
            if not isinstance(term, Name) or term.name not in self.hom.iterators:
                return
            coefficients[self.hom.iterators.index(term.name)] += factor
        yield constant, coefficients

    @cached_property
    def _points(self) -> npt.NDArray[np.int64]:
        """The sample, a row per dimension: multiples of irrational numbers, which fill the box evenly."""
        count = len(self.extents)
        root = 2.0
        for _ in range(32):
            root = (1.0 + root) ** (1.0 / (count + 1))
        steps = root ** -np.arange(1.0, count + 1)
        parts = (0.5 + np.outer(steps, np.arange(SAMPLE))) % 1.0
        found: npt.NDArray[np.int64] = (parts * np.array(self.extents)[:, None]).astype(np.int64)
        return found

    def _counted(self, box: Sizes) -> Shares:
        sizes, ends = np.array(box)[:, None], np.array(self.extents)[:, None]
        low = self._points // sizes * sizes
        high = np.minimum(low + sizes, ends) - 1
        some = whole = np.ones(SAMPLE, dtype=bool)
        for constant, coefficients in self._planes:
            factors = np.array(coefficients)[:, None]
            at_low, at_high = factors * low, factors * high
            some = some & (constant + np.maximum(at_low, at_high).sum(axis=0) >= 0)
            whole = whole & (constant + np.minimum(at_low, at_high).sum(axis=0) >= 0)
        return Shares(max(1, int(some.sum())) / SAMPLE, int(whole.sum()) / SAMPLE)
