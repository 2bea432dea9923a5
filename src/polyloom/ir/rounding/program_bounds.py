"""How far two correct evaluations of a program may differ, element by element.

An element that combines n terms in any order may be off by ``n - 1`` roundings of the sum of their sizes,
beside the errors of the terms themselves (``rules``): for ``y += W * x``, whose terms round once, that
is ``n * eps * sum(|terms|)``, eps the distance of 1 from the next number of its type. Integers do not round.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.boxes import Step, guard_mask, iterator_values, read, steps, store
from polyloom.ir.evaluation.inputs import checked_inputs
from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.expressions import BinaryOp
from polyloom.ir.program import Program, Statement
from polyloom.ir.rounding.rules import approximate
from polyloom.ir.rounding.sums import family
from polyloom.ir.scalar_functions.approximate import Approximate, Floats

NDArray = npt.NDArray[Any]


def error_bound(
    program: Program, inputs: Mapping[str, NDArray], errors: Mapping[str, Floats] | None = None
) -> dict[str, Floats]:
    """Return a bound on the error of each element of every tensor that a statement writes.

    ``errors``: how far inputs may be from the right values (a state that an earlier invocation computed);
    those that it does not name are exact. Each array has the shape of its input. Infinite: nothing is known.

    Errors: those of ``evaluate``. Not in the papers.
    """
    known = {
        name: Approximate(array, (errors or {}).get(name))
        for name, array in checked_inputs(program, inputs).items()
    }
    bounds: dict[str, Floats] = {}
    with np.errstate(all="ignore"):
        for name, array in evaluate(program, inputs).items():
            statement = program.definition(name)
            assert statement is not None, name
            bounds[name] = _bound(statement, array, known)
            known[name] = Approximate(array, bounds[name] if bounds[name].any() else None)
    return bounds


def _bound(statement: Statement, result: NDArray, known: Mapping[str, Approximate]) -> Floats:
    sums = _Sums(statement, result.shape)
    for step in steps(statement):
        reads = [_read(known[a.tensor], statement, k, step) for k, a in enumerate(statement.reads)]
        sums.add(step, approximate(statement.expression, reads, partial(_iterator, step)))
    return sums.bound()


def _iterator(step: Step, dimension: int) -> NDArray:
    return iterator_values(dimension, step.box)


def _read(known: Approximate, statement: Statement, position: int, step: Step) -> Approximate:
    access = statement.reads[position]
    error = None if known.error is None else read(known.error, access, step.box)
    return Approximate(read(known.value, access, step.box), error)


class _Sums:
    """What is gathered of the terms of each element, box after box."""

    def __init__(self, statement: Statement, shape: tuple[int, ...]) -> None:
        operator = statement.reduction.operator
        self.statement = statement
        self.family = family(BinaryOp.MAXIMUM if operator is None else operator)
        self.channels = tuple(np.full(shape, start) for start in self.family.starts)

    def add(self, step: Step, term: Approximate) -> None:
        """Add the terms of a box."""
        statement, shape = self.statement, tuple(map(len, step.box))
        mask = guard_mask(statement, step.box)
        where = np.ones(shape, np.bool_) if mask is None else mask
        found = self.family.present(term, where)
        for channel, function, terms in zip(self.channels, self.family.functions, found, strict=True):
            one = terms if step.run is None else function.reduce(terms, axis=step.run, keepdims=True)
            before = read(channel, statement.write, step.written)
            store(channel, statement.write, step.written, function(before, one), _inside(mask, step.run))

    def bound(self) -> Floats:
        """Return the bound of each element."""
        return self.family.bound(self.channels, self.statement.expression.type)


def _inside(mask: NDArray | None, run: int | None) -> NDArray | None:
    if mask is None or run is None:
        return mask
    return np.logical_or.reduce(mask, axis=run, keepdims=True)
