"""A nest with errors: its sequential body on lanes, which keeps the order of the source.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.launches import assign, check_inside
from polyloom.ir.evaluation.nests import NestRun, NestStep, private_arrays, run_nest
from polyloom.ir.expressions import Expression
from polyloom.ir.host import Index, Nest, View, expressions_of
from polyloom.ir.integers import integer
from polyloom.ir.rounding.md_homs import Errors, has_rounding, put_error
from polyloom.ir.rounding.rules import approximate
from polyloom.ir.scalar_functions.approximate import Approximate, Error, wide

NDArray = npt.NDArray[Any]


def run_nest_with_errors(
    node: Nest,
    arrays: Mapping[str, NDArray],
    errors: Errors,
    names: Mapping[str, int],
    spend: Callable[[int], None],
) -> None:
    """Carry out a nest: buffers among ``arrays`` change, and their errors.

    ``spend`` is told of the lanes of each assignment before it is carried out.
    """
    extents = tuple(max(0, integer(e, names)) for e in node.extents)
    if not prod(extents):
        return
    if _is_exact(node, errors):
        run_nest(node, arrays, names)
        return
    private = private_arrays(node, names, (prod(extents),))
    own: Errors = {**errors, **dict.fromkeys(private)}
    _ErrorRun(node, {**arrays, **private}, frozenset(private), dict(names), own, spend).all_lanes(extents)
    errors.update({name: own[name] for name in errors})


def _is_exact(node: Nest, errors: Errors) -> bool:
    """Return whether nothing rounds, and nothing that is touched has errors."""
    touched = {view.buffer for a in node.assignments for view in (a.target, *a.reads)}
    return all(errors.get(name) is None for name in touched) and not any(
        map(has_rounding, expressions_of(node))
    )


@dataclass(frozen=True, eq=False)
class _ErrorRun(NestRun):
    errors: Errors
    spend: Callable[[int], None]

    def step(self, step: NestStep) -> None:
        self.spend(step.lanes.size)
        _ErrorStep(self, step).run()


class _ErrorStep(Sequence[Approximate]):
    """An assignment at some lanes; as a sequence, what its views read there, with errors."""

    def __init__(self, run: _ErrorRun, step: NestStep) -> None:
        self.within = run
        self.step = step

    def __len__(self) -> int:
        return len(self.step)

    def __getitem__(self, position: Any) -> Any:
        view = self.step.assignment.reads[position]
        error, uncertain = self._error(view), self._uncertain(view)
        if uncertain is not None:
            error = np.where(uncertain, inf, 0.0 if error is None else error)
        return Approximate(self.step[position], error)

    def _error(self, view: View) -> Error:
        error = self.within.errors[view.buffer]
        if error is None:
            return None
        places = zip(self.step.places(view), error.shape, strict=True)
        return np.asarray(error[tuple(np.clip(p, 0, max(0, n - 1)) for p, n in places)])

    def _uncertain(self, view: View) -> npt.NDArray[np.bool_] | None:
        """Return the lanes where errors may make a view access another element; None for none."""
        computed = [self._value(i).error for i in view.indices if not isinstance(i, Index)]
        masks = [e > 0 for e in computed if e is not None]
        return np.logical_or.reduce(masks) if masks else None

    def _value(self, expression: Expression) -> Approximate:
        shape, names = self.step.lanes.shape, self.within.names
        found = approximate(expression, self, self.step.coordinates.__getitem__, names)
        error = None if found.error is None else np.broadcast_to(found.error, shape)
        return Approximate(np.broadcast_to(found.value, shape), error)

    def run(self) -> None:
        """Store the value where the condition holds, and errors also where it is in doubt."""
        assignment, lanes = self.step.assignment, self.step.lanes
        target = assignment.target
        value = self._value(assignment.value)
        where = np.ones(lanes.shape, np.bool_)
        doubtful = np.zeros(lanes.shape, np.bool_)
        if assignment.condition is not None:
            condition = self._value(assignment.condition)
            where = condition.value.astype(np.bool_)
            doubtful = doubtful if condition.error is None else condition.error > 0
        elsewhere = self._uncertain(target)
        places = self.step.places(target)
        array = self.within.arrays[target.buffer]
        error = value.error
        if doubtful.any():
            error = np.where(doubtful, self._either(target, places, value), 0.0 if error is None else error)
        chosen = tuple(p[where] for p in places)
        check_inside(assignment.name, target.buffer, array.shape, chosen)
        assign(array, chosen, value.value[where])
        touched = where | doubtful
        if elsewhere is not None and (elsewhere & touched).any():
            self.within.errors[target.buffer] = np.full(array.shape, inf)
        else:
            inside = tuple(np.clip(p[touched], 0, n - 1) for p, n in zip(places, array.shape, strict=True))
            own = None if error is None else error[touched]
            put_error(self.within.errors, target.buffer, array, inside, own)

    def _either(self, target: View, places: tuple[NDArray, ...], new: Approximate) -> NDArray:
        """Return the error of elements that may have been written or not."""
        array = self.within.arrays[target.buffer]
        inside = tuple(np.clip(p, 0, n - 1) for p, n in zip(places, array.shape, strict=True))
        before = self._error(target)
        ours, theirs = (0.0 if e is None else e for e in (new.error, before))
        apart = np.abs(wide(new.value) - wide(array[inside])) + ours + theirs
        return np.nan_to_num(apart, nan=inf, posinf=inf)
