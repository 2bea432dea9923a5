"""The meaning of a program: what each statement writes, in NumPy. The oracle of all tests.

An element is the neutral element of the statement's reduction, combined with the terms of the instances
that write it, one after another in lexicographic order; every operation is rounded to the element type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.arithmetic import value
from polyloom.ir.evaluation.boxes import Step, guard_mask, iterator_values, read, steps, store
from polyloom.ir.evaluation.inputs import checked_inputs
from polyloom.ir.program import Combine, Program, Statement
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]


def evaluate(program: Program, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return every tensor that a statement writes, by name.

    ``inputs``: one array per input, of its shape and element type. Memory beyond the tensors
    themselves is bounded; a statement of 10**7 points takes about a second.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``.
    Source: dtg_codegen, Sec. 4.1.1 (initializing reductions). Rounding and order: not in the papers.
    """
    arrays = checked_inputs(program, inputs)
    written: dict[str, NDArray] = {}
    with np.errstate(all="ignore"):
        for statement in program.statements:
            target = program.tensor(statement.write.tensor)
            written[target.name] = _execute(statement, target.shape, target.type, {**arrays, **written})
    return written


def neutral(reduction: Combine, kind: ElementType) -> NDArray:
    """Return what a reduction starts from, as a rank-0 array of the element type; 0 for ``++``."""
    match reduction:
        case Combine.CONCATENATE | Combine.ADD:
            return np.zeros((), kind.dtype)
        case Combine.MULTIPLY:
            return np.ones((), kind.dtype)
        case Combine.MAXIMUM:
            return np.asarray(-np.inf if kind.is_float else np.iinfo(kind.value).min, kind.dtype)
        case Combine.MINIMUM:
            return np.asarray(np.inf if kind.is_float else np.iinfo(kind.value).max, kind.dtype)


def _execute(
    statement: Statement, shape: tuple[int, ...], kind: ElementType, arrays: Mapping[str, NDArray]
) -> NDArray:
    start = neutral(statement.reduction, kind)
    out: NDArray = np.full(shape, start, kind.dtype)
    for step in steps(statement):
        mask = guard_mask(statement, step.box)
        if mask is None or mask.any():
            _add_terms(statement, step, out, _terms(statement, step, arrays), mask, start)
    return out


def _terms(statement: Statement, step: Step, arrays: Mapping[str, NDArray]) -> NDArray:
    """Return the value of the expression at every point of the step's box."""
    reads = [read(arrays[access.tensor], access, step.box) for access in statement.reads]
    found = value(statement.expression, reads, lambda k: iterator_values(k, step.box))
    return np.broadcast_to(found, tuple(map(len, step.box)))


def _add_terms(
    statement: Statement, step: Step, out: NDArray, terms: NDArray, mask: NDArray | None, start: NDArray
) -> None:
    """Combine a box of terms into the output; excluded points contribute the neutral element."""
    operator = statement.reduction.operator
    if operator is None:
        store(out, statement.write, step.written, terms, mask)
        return
    proper = terms if mask is None else np.where(mask, terms, start)
    before = read(out, statement.write, step.written)
    assert operator.ufunc is not None
    after = _combined(operator.ufunc, before, proper, step.run)
    store(out, statement.write, step.written, after, _written_where(mask, step.run))


def _written_where(mask: NDArray | None, run: int | None) -> NDArray | None:
    """Return where at least one point of the run takes part."""
    if mask is None or run is None:
        return mask
    return np.logical_or.reduce(mask, axis=run, keepdims=True)


def _combined(operator: np.ufunc, before: NDArray, terms: NDArray, run: int | None) -> NDArray:
    if run is None or terms.shape[run] == 1:
        result: NDArray = operator(before, terms)
        return result
    line = np.concatenate([before, terms], axis=run)
    sums = operator.accumulate(line, axis=run, dtype=line.dtype)
    return np.take(sums, [-1], axis=run)
