"""Finding the first tensor of a program that is not as the evaluator has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.program import Program
from polyloom.ir.rounding.program_bounds import error_bound
from polyloom.ir.scalar_functions.approximate import Floats

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


@dataclass(frozen=True)
class Comparison:
    """Arrays that were compared with others, element by element within bounds.

    ``max_error``: in units of the bound, infinite where nothing may differ. ``mismatches``: a line for each
    array that is wrong. ``tight``: the share of elements that must be equal, or whose bound is below
    ``TIGHT`` of their value. ``unknown``: the number of elements that differ, and that no bound judges.
    """

    max_error: float
    mismatches: tuple[str, ...]
    tight: float
    unknown: int

    @property
    def passed(self) -> bool:
        """Whether no element is further off than its bound."""
        return not self.mismatches


TIGHT = 0.01
"""The share of a value below which its bound says much."""


def compared(
    found: Mapping[str, NDArray], wanted: Mapping[str, NDArray], bounds: Mapping[str, Floats]
) -> Comparison:
    """Compare arrays by name; elements without a bound must be equal.

    An infinite bound judges nothing.
    """
    worst, mismatches, tight, unknown = 0.0, [], 0, 0
    for name, array in wanted.items():
        if found[name].shape != array.shape:
            mismatches.append(f"{name} is {list(found[name].shape)}, not {list(array.shape)}")
            worst = float("inf")
            continue
        bound = np.broadcast_to(bounds.get(name, np.zeros(())), array.shape)
        known = np.isfinite(bound)
        units = in_units(found[name], array, bound)
        tight += int(np.count_nonzero(_is_tight(bound, array)))
        unknown += int(np.count_nonzero(~known & (in_units(found[name], array, 1.0) > 0)))
        units = np.where(known, units, 0.0)
        worst = max(worst, float(units.max(initial=0.0)))
        if (units > 1).any():
            mismatches.append(mismatch_text(name, found[name], array, units > 1))
    count = sum(array.size for array in wanted.values())
    return Comparison(worst, tuple(mismatches), tight / count if count else 1.0, unknown)


MUCH = 0.5
"""The share of elements with a tight bound from which on a comparison says much."""


def said(tight: float, unknown: int) -> str:
    """Return what bounds say, in words: the share of elements with a tight one, and how many have none."""
    share = f"for {tight:.0%} of the elements the bound is below {TIGHT:.0%} of the value"
    unjudged = f", {unknown:,} differ that have none" if unknown else ""
    return f"{'the bound says little: ' if tight < MUCH else ''}{share}{unjudged}"


def _is_tight(bound: Floats, wanted: NDArray) -> npt.NDArray[np.bool_]:
    """Return where a bound says much of an element: it is none, or small beside the value."""
    with np.errstate(all="ignore"):
        sizes = np.abs(wanted.astype(np.float64))
    least = float(np.finfo(wanted.dtype).smallest_normal) if wanted.dtype.kind == "f" else 0.0
    return np.isfinite(bound) & (bound <= np.maximum(TIGHT * np.where(np.isfinite(sizes), sizes, 0.0), least))


def mismatch_text(
    name: str, found: NDArray, wanted: NDArray, wrong: npt.NDArray[np.bool_], when: str = ""
) -> str:
    """Return ``y[3] is 2.0, not 3.0; 2 of 14 are wrong``, of the first that is wrong."""
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    element = name + "".join(f"[{k}]" for k in at)
    return f"{element} is {found[at]}, not {wanted[at]}{when}; {int(wrong.sum())} of {wrong.size} are wrong"


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
            bound = bounds.get(name, np.zeros(wanted.shape))
            units = np.where(np.isfinite(bound), in_units(given[name], wanted, bound), 0.0)
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
