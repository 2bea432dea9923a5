"""Whether a run is right: its outputs against those of a reference.

Integers, and floats that hold integers small enough, must be equal. Where a program divides, takes roots or
calls functions, or where the inputs are real numbers, each element may be off by its own bound
(``ir/rounding/host_bounds``); under ``--fp strict`` only where functions of a library are called. NaN must
meet NaN, and an infinity the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.host_inputs import input_buffers
from polyloom.ir.evaluation.host_programs import evaluate_host
from polyloom.ir.expressions import Binary, Unary, walk
from polyloom.ir.host import HostProgram, all_expressions
from polyloom.ir.rounding.host_bounds import host_error_bound
from polyloom.ir.rounding.library_functions import library_functions
from polyloom.ir.verification.comparison import Comparison, compared, said
from polyloom.ir.verification.references import Expected, Reference, access_outside

NDArray = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """``max_error``: in units of the bound of an element. ``exact``: whether equality was asked for.

    ``mismatches``: a line for each array that is wrong. ``tight``: the share of elements that must be equal,
    or whose bound is below 1 % of their value. ``unknown``: how many elements differ and have no bound.
    ``coarse``: whether the program was too large for bounds of its elements, so that the largest element of
    each array gave one.
    """

    passed: bool
    exact: bool
    max_error: float
    mismatches: tuple[str, ...]
    tight: float = 1.0
    unknown: int = 0
    coarse: bool = False

    @property
    def says(self) -> str:
        """What the bounds say: the share of elements of which they say much."""
        coarse = (
            "too large for a bound of each element, n eps max|element| in its place; " if self.coarse else ""
        )
        return coarse + said(self.tight, self.unknown)

    def json(self) -> dict[str, Any]:
        """Return the document ``check`` of ``run --json``; infinite errors as null."""
        error = self.max_error if np.isfinite(self.max_error) else None
        return {
            "passed": self.passed,
            "exact": self.exact,
            "max_error": error,
            "tight": self.tight,
            "unknown": self.unknown,
            "coarse": self.coarse,
        }


def wanted_results(
    program: HostProgram, parameters: Mapping[str, int], inputs: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Return the evaluator's results, by name.

    Errors: ``access-outside`` where the program, with these inputs, accesses an element that no array has: a
    subscript computed from data, or an array that is smaller than the program takes it for.
    """
    try:
        return evaluate_host(program, parameters, inputs)
    except IndexError as fault:
        raise access_outside(program.name, fault) from fault


def evaluated(program: HostProgram) -> Reference:
    """Return the evaluator of a program as its reference, which sees nothing of how the program was made."""

    def results(parameters: Mapping[str, int], arrays: Mapping[str, NDArray]) -> Expected:
        needed = {b.name for b in input_buffers(program)}
        inputs = {name: array for name, array in arrays.items() if name in needed}
        return Expected(wanted_results(program, parameters, inputs), "the evaluator's results", False)

    return results


def check_run(
    program: HostProgram,
    parameters: Mapping[str, int],
    inputs: Mapping[str, NDArray],
    expected: Expected,
    found: Mapping[str, NDArray],
    *,
    made_up: bool,
) -> Verdict:
    """Compare what a run left (``found``) with what is expected.

    ``made_up``: whether the inputs are small integers. Where the program, as it was transformed, leaves its
    arrays although the reference does not, nothing may differ.
    """
    wanted = expected.arrays
    small = made_up and not rounds(program) and all(_counts(array) for array in wanted.values())
    exact = small or (program.strict and not library_functions(program))
    comparison = compared(found, wanted, {})
    if exact or comparison.passed:
        return _verdict(comparison, exact=exact)
    try:
        bounded = host_error_bound(program, parameters, inputs)
    except IndexError:
        return _verdict(comparison, exact=False)
    bounds = _coarse_bounds(wanted) if bounded is None else bounded.bounds
    widened = {name: expected.bounds * bound for name, bound in bounds.items()}
    return _verdict(compared(found, wanted, widened), exact=False, coarse=bounded is None)


def _verdict(comparison: Comparison, *, exact: bool, coarse: bool = False) -> Verdict:
    c = comparison
    return Verdict(
        passed=c.passed,
        exact=exact,
        max_error=c.max_error,
        mismatches=c.mismatches,
        tight=c.tight,
        unknown=c.unknown,
        coarse=coarse,
    )


def _coarse_bounds(wanted: Mapping[str, NDArray]) -> dict[str, npt.NDArray[np.float64]]:
    """Return ``n * eps * largest element`` for all elements of an array, n its largest extent."""
    return {
        name: np.full(array.shape, max(1, *array.shape, 1) * _eps(array) * _largest(array))
        for name, array in wanted.items()
    }


def _eps(array: NDArray) -> float:
    return float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0


def _largest(array: NDArray) -> float:
    sizes = np.abs(array.astype(np.float64))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def rounds(program: HostProgram) -> bool:
    """Return whether a program has operations on floats that give no integers for integers."""
    return any(
        isinstance(part, Unary | Binary) and part.type.is_float and not part.op.rounding.keeps_integers
        for expression in all_expressions(program)
        for part in walk(expression)
    )


def _counts(array: NDArray) -> bool:
    """Return whether all elements are integers that the type holds with room to spare."""
    if array.dtype.kind != "f":
        return True
    limit = 2.0 ** (np.finfo(array.dtype).nmant - 1)
    with np.errstate(invalid="ignore"):
        return bool(np.all((np.abs(array) < limit) & (array == np.rint(array))))
