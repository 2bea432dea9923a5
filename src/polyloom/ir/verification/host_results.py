"""Whether a run of a host program is right: what it left against what is expected.

Integers, and floats that hold integers small enough, must be equal. Where a program divides, takes roots or
calls functions, or where the inputs are real numbers, each element may be off by its own bound
(``ir/rounding/programs``); under ``--fp strict`` only where functions of a library are called. Programs too
large for that have a bound for each array, and where this is exceeded a C program says by how much it reacts
to other roundings itself (``ir/rounding/redirected``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError
from polyloom.ir.expressions import Binary, Unary, walk
from polyloom.ir.host import HostProgram, all_expressions
from polyloom.ir.rounding.library_functions import library_functions
from polyloom.ir.rounding.programs import host_error_bound
from polyloom.ir.rounding.redirected import spread
from polyloom.ir.verification.comparison import Verdict, compared
from polyloom.ir.verification.references import Expected

NDArray = npt.NDArray[Any]


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
    verdict = compared(found, wanted, {}).against(expected)
    if exact or verdict.passed:
        return replace(verdict, exact=exact)
    try:
        bounded = host_error_bound(program, parameters, inputs)
    except IndexError:
        return verdict
    if bounded is None:
        return _coarse_verdict(expected, found)
    widened = {name: expected.bounds * bound for name, bound in bounded.bounds.items()}
    return compared(found, wanted, widened).against(expected)


def _coarse_verdict(expected: Expected, found: Mapping[str, NDArray]) -> Verdict:
    """Compare within a bound for each array; beyond it, within that and what rounding moves elements by."""
    wanted = expected.arrays
    bounds = {name: expected.bounds * bound for name, bound in _coarse_bounds(wanted).items()}
    verdict = replace(compared(found, wanted, bounds).against(expected), coarse=True)
    if verdict.passed or expected.rounded_elsewhere is None:
        return verdict
    try:
        moved = spread(wanted, expected.rounded_elsewhere())
    except PolyloomError:  # other roundings may lead where there is no element
        return verdict
    wider = {name: bound + moved[name] for name, bound in bounds.items()}
    return replace(compared(found, wanted, wider).against(expected), coarse=True, redirected=True)


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
