"""Finding the first tensor of a program that is not as the evaluator has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.error_bound import error_bound
from polyloom.ir.program import Program

NDArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """A tensor that differs, and its worst element.

    ``max_error`` is in units of n * eps * sum of |terms| of an element, n its number of terms; infinite
    where nothing may differ. ``text``: ``y[3] is 2.0, not 3.0; 2 of 14 are wrong``.
    """

    tensor: str
    max_error: float
    text: str


def first_difference(
    program: Program,
    inputs: Mapping[str, NDArray],
    tensors: Mapping[str, NDArray],
    given: Mapping[str, NDArray],
) -> Difference | None:
    """Return the first of the ``given`` tensors, in the order of ``tensors``, that differs from them.

    ``tensors``: what the evaluator gives for ``inputs``, in the order of the program. An element that a
    statement writes may differ by its error bound; an input must be equal.

    Errors: ``compare-unknown``, ``compare-shape``, ``compare-nothing``.
    """
    return first_beyond(tensors, error_bound(program, inputs), given)


def first_beyond(
    tensors: Mapping[str, NDArray],
    bounds: Mapping[str, npt.NDArray[np.float64]],
    given: Mapping[str, NDArray],
) -> Difference | None:
    """Return the first of the ``given`` tensors that is further from ``tensors`` than its bound (or 0).

    Errors: ``compare-unknown``, ``compare-shape``, ``compare-nothing``.
    """
    faults = list(_faults(tensors, given))
    if faults:
        raise PolyloomError(*faults)
    for name, wanted in tensors.items():
        if name in given:
            units = in_units(given[name], wanted, bounds.get(name, np.zeros(wanted.shape)))
            if (units > 1).any():
                return _difference(name, given[name], wanted, units)
    return None


def in_units(
    found: NDArray, wanted: NDArray, bound: float | npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return how far elements are off, in the unit of the bound; infinite where nothing may differ."""
    with np.errstate(all="ignore"):
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        same = (found == wanted) | (np.isnan(a) & np.isnan(b))
        units = np.abs(a - b) / bound
    return np.where(same, 0.0, np.where(np.isnan(units), np.inf, units))


def _difference(name: str, found: NDArray, wanted: NDArray, units: npt.NDArray[np.float64]) -> Difference:
    at = tuple(int(k) for k in np.unravel_index(int(units.argmax()), units.shape))
    element = name + "".join(f"[{k}]" for k in at)
    count = int(np.count_nonzero(units > 1))
    text = f"{element} is {found[at]}, not {wanted[at]}; {count} of {units.size} are wrong"
    return Difference(name, float(units[at]), text)


def _faults(tensors: Mapping[str, NDArray], given: Mapping[str, NDArray]) -> Iterator[Diagnostic]:
    helps = [f"the program's tensors: {', '.join(tensors)}"]
    if not given:
        yield error("compare-nothing", "there is no tensor to compare with", helps=helps)
    for name, array in given.items():
        if name not in tensors:
            yield error("compare-unknown", f"the program has no tensor `{name}`", helps=helps)
        elif array.shape != tensors[name].shape or array.dtype.kind not in "fiub":
            message = f"`{name}` to compare with is {array.dtype.name}{list(array.shape)}"
            wanted = f"give numbers of shape {list(tensors[name].shape)}"
            yield error("compare-shape", message, helps=[wanted])
