"""A nest with errors: its sequential body on lanes, which keeps the order of the source.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.launches import assign, check_inside
from polyloom.ir.evaluation.nests import NestRun, NestStep, private_arrays, run_nest
from polyloom.ir.expressions import Binary, BinaryOp, Expression, Read, Unary, UnaryOp, children, walk
from polyloom.ir.host import Assignment, Index, Nest, View, expressions_of
from polyloom.ir.integers import integer
from polyloom.ir.rebuild import read_positions
from polyloom.ir.rounding.md_homs import Errors, has_rounding, put_error
from polyloom.ir.rounding.rules import approximate, epsilon
from polyloom.ir.scalar_functions.approximate import Approximate, Error, wide

NDArray = npt.NDArray[Any]

BLOCK = 8
"""Points of a linear recurrence that are computed together, at most."""


def run_nest_with_errors(
    node: Nest,
    arrays: Mapping[str, NDArray],
    errors: Errors,
    names: Mapping[str, int],
    spend: Callable[[int, int], None],
    *,
    strict: bool = False,
) -> None:
    """Carry out a nest: buffers among ``arrays`` change, and their errors.

    ``spend`` is told of the lanes and parts of each assignment before it is carried out. But for ``strict``,
    linear recurrences (``y[i] = a * y[i - 1] + x[i]``) may run in blocks of ``BLOCK`` points.
    """
    extents = tuple(max(0, integer(e, names)) for e in node.extents)
    if not prod(extents):
        return
    if _is_exact(node, errors):
        run_nest(node, arrays, names)
        return
    private = private_arrays(node, names, (prod(extents),))
    own: Errors = {**errors, **dict.fromkeys(private)}
    run = _ErrorRun(node, {**arrays, **private}, frozenset(private), dict(names), own, spend, strict)
    run.all_lanes(extents)
    errors.update({name: own[name] for name in errors})


def _is_exact(node: Nest, errors: Errors) -> bool:
    """Return whether nothing rounds, and nothing that is touched has errors."""
    touched = {view.buffer for a in node.assignments for view in (a.target, *a.reads)}
    return all(errors.get(name) is None for name in touched) and not any(
        map(has_rounding, expressions_of(node))
    )


def _is_recurrence(assignment: Assignment) -> bool:
    """Return whether an assignment is linear, along a row, in other elements of the array that it writes."""
    target = assignment.target
    last = target.indices[-1] if target.indices else None
    if not assignment.value.type.is_float or not isinstance(last, Index):
        return False
    along = {k for k, c in enumerate(last.coefficients) if c}
    reads = dict(enumerate(assignment.reads))
    own = {p for p, view in reads.items() if view.buffer == target.buffer and view != target}
    moving = {p for p, view in reads.items() if p in own or _moves(view, along)}
    return bool(own & set(read_positions(assignment.value))) and _is_linear(assignment.value, own, moving)


def _moves(view: View, along: Collection[int]) -> bool:
    return any(not isinstance(i, Index) or any(i.coefficients[k] for k in along) for i in view.indices)


def _is_linear(expression: Expression, own: Collection[int], moving: Collection[int]) -> bool:
    """Return whether what the reads in ``own`` are multiplied by are no reads that move."""
    if not set(own) & set(read_positions(expression)):
        return True
    sides = children(expression)
    free = [side for side in sides if not set(moving) & set(read_positions(side))]
    match expression:
        case Read() | Unary(op=UnaryOp.NEGATE) | Binary(op=BinaryOp.ADD | BinaryOp.SUBTRACT):
            pass
        case Binary(op=BinaryOp.MULTIPLY) if free:
            pass
        case Binary(op=BinaryOp.DIVIDE) if sides[1] in free:
            pass
        case _:
            return False
    return all(_is_linear(side, own, moving) for side in sides)


@dataclass(frozen=True, eq=False)
class _ErrorRun(NestRun):
    errors: Errors
    spend: Callable[[int, int], None]
    strict: bool

    def step(self, step: NestStep) -> None:
        self.spend(step.lanes.size, len(list(walk(step.assignment.value))))
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

    def _in_any_order(self, expression: Expression, value: Approximate) -> Approximate:
        """Return a value with the error that it may have where products are distributed over sums.

        A block of n points adds at most as many products as it has points to each of them, and each factor
        is a product of as many coefficients; what reaches later points does so by the recurrence itself.
        """
        terms = np.broadcast_to(np.nan_to_num(self._terms(expression), nan=0.0), self.step.lanes.shape)
        operations = 2 * BLOCK + sum(1 for _ in walk(expression))
        own = operations * epsilon(expression.type) * np.where(np.isfinite(terms), terms, 0.0)
        return Approximate(value.value, own if value.error is None else value.error + own)

    def _terms(self, expression: Expression) -> NDArray:
        """Return the sum of the sizes of an expression's terms."""
        match expression:
            case Binary(op=BinaryOp.ADD | BinaryOp.SUBTRACT, left=a, right=b):
                return np.asarray(self._terms(a) + self._terms(b))
            case Binary(op=BinaryOp.MULTIPLY, left=a, right=b):
                return np.asarray(self._terms(a) * self._terms(b))
            case Binary(op=BinaryOp.DIVIDE, left=a, right=b):
                return np.asarray(self._terms(a) / np.abs(wide(self._value(b).value)))
            case Unary(op=UnaryOp.NEGATE, operand=a):
                return self._terms(a)
            case _:
                found = self._value(expression)
                return np.asarray(np.abs(wide(found.value)) + (0.0 if found.error is None else found.error))

    def run(self) -> None:
        """Store the value where the condition holds, and errors also where it is in doubt."""
        assignment, lanes = self.step.assignment, self.step.lanes
        target = assignment.target
        value = self._value(assignment.value)
        if not self.within.strict and _is_recurrence(assignment):
            value = self._in_any_order(assignment.value, value)
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
