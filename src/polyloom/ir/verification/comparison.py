"""Whether results are right: arrays compared with expected ones, element by element, within bounds.

Every check of the package ends here: of a run, of a simulation, of a candidate of the tuner, of a trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.ir.rounding.redirected import FACTOR
from polyloom.ir.scalar_functions.approximate import Floats
from polyloom.ir.verification.references import Expected

NDArray = npt.NDArray[Any]

TIGHT = 0.01
"""The share of a value below which its bound says much."""

MUCH = 0.5
"""The share of elements with a tight bound from which on a comparison says much."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What comparing results with expected ones found.

    ``max_error``: in units of the bound of an element, infinite where nothing may differ. ``mismatches``: a
    line for each array that is wrong. ``tight``: the share of elements that are numbers and must be equal, or
    whose bound is below ``TIGHT`` of their value. ``unknown``: how many elements differ and have no bound.
    ``no_numbers``: how many should be infinite or NaN. ``exact``: whether nothing may differ at all.
    ``coarse``: whether the program was too large for bounds of its elements, so that the largest element of
    each array gave one. ``redirected``: whether the reference then rounded up, down and towards zero as well,
    which gave each element a wider one. ``by``, ``reading_checked``, ``notes``: those of ``Expected``.
    ``reals``: the check with made-up reals, of which ``mismatches`` speak as well.
    """

    max_error: float = 0.0
    mismatches: tuple[str, ...] = ()
    tight: float = 1.0
    unknown: int = 0
    no_numbers: int = 0
    exact: bool = False
    coarse: bool = False
    redirected: bool = False
    by: str = ""
    reading_checked: bool = False
    notes: tuple[str, ...] = ()
    reals: Reals | None = None

    @property
    def passed(self) -> bool:
        """Whether no element is further off than its bound."""
        return not self.mismatches

    @property
    def says(self) -> str:
        """What the bounds say: for how many elements they are tight, none, or of no number."""
        coarse = ""
        if self.coarse:
            more = (
                f" and {FACTOR:g} times what the reference moves with its rounding" if self.redirected else ""
            )
            coarse = f"too large for a bound of each element, n eps max|element|{more} in its place; "
        little = "the bound says little: " if self.tight < MUCH else ""
        share = f"for {self.tight:.0%} of the elements the bound is below {TIGHT:.0%} of the value"
        unjudged = f", {self.unknown:,} differ that have none" if self.unknown else ""
        strange = f", {self.no_numbers:,} should be no numbers" if self.no_numbers else ""
        return f"{coarse}{little}{share}{unjudged}{strange}"

    def against(self, expected: Expected) -> Verdict:
        """Return this verdict with what it was compared with."""
        e = expected
        return replace(self, by=e.by, reading_checked=e.reading_checked, notes=e.notes)

    def with_reals(self, reals: Reals | None) -> Verdict:
        """Return this verdict together with that on made-up reals."""
        if reals is None:
            return self
        return replace(self, mismatches=self.mismatches + reals.verdict.mismatches, reals=reals)

    def mismatch(self, results: str) -> PolyloomError:
        """Return the error of wrong results; ``results``: whose, as a sentence begins with it."""
        message = f"{results} are not equal to {self.by}"
        return PolyloomError(error("check-mismatch", message, notes=self.mismatches))

    def json(self) -> dict[str, Any]:
        """Return the document ``check`` of ``--json``; infinite errors as null."""
        return {
            "passed": self.passed,
            "exact": self.exact,
            "max_error": self.max_error if isfinite(self.max_error) else None,
            "tight": self.tight,
            "unknown": self.unknown,
            "no_numbers": self.no_numbers,
            "coarse": self.coarse,
            "redirected": self.redirected,
            "reference": self.by,
            "reading_checked": self.reading_checked,
            "reals": None if self.reals is None else self.reals.json(),
        }


@dataclass(frozen=True)
class Reals:
    """A check with made-up reals from ``10**-decades`` to ``10**decades``, half so far for float16."""

    verdict: Verdict
    decades: float
    seed: int

    def json(self) -> dict[str, Any]:
        """Return the document ``check.reals``."""
        return {**self.verdict.json(), "decades": self.decades, "seed": self.seed}


def compared(
    found: Mapping[str, NDArray], wanted: Mapping[str, NDArray], bounds: Mapping[str, Floats]
) -> Verdict:
    """Compare arrays by name; elements without a bound must be equal.

    NaN must meet NaN, and an infinity the same one. An infinite bound judges nothing.
    """
    worst, mismatches, tight, unknown, strange = 0.0, [], 0, 0, 0
    for name, array in wanted.items():
        if found[name].shape != array.shape:
            mismatches.append(f"{name} is {list(found[name].shape)}, not {list(array.shape)}")
            worst = float("inf")
            continue
        bound = np.broadcast_to(bounds.get(name, np.zeros(())), array.shape)
        known = np.isfinite(bound)
        units = _in_units(found[name], array, bound)
        tight += int(np.count_nonzero(_is_tight(bound, array)))
        strange += _no_numbers(array)
        unknown += int(np.count_nonzero(~known & (_in_units(found[name], array, 1.0) > 0)))
        units = np.where(known, units, 0.0)
        worst = max(worst, float(units.max(initial=0.0)))
        if (units > 1).any():
            mismatches.append(_mismatch_text(name, found[name], array, units > 1))
    count = sum(array.size for array in wanted.values())
    share = tight / count if count else 1.0
    return Verdict(
        max_error=worst, mismatches=tuple(mismatches), tight=share, unknown=unknown, no_numbers=strange
    )


def _no_numbers(array: NDArray) -> int:
    return int(np.count_nonzero(~np.isfinite(array))) if array.dtype.kind == "f" else 0


def _is_tight(bound: Floats, wanted: NDArray) -> npt.NDArray[np.bool_]:
    """Return where a bound says much of an element: a number, and it is none, or small beside the value."""
    with np.errstate(all="ignore"):
        sizes = np.abs(wanted.astype(np.float64))
    least = float(np.finfo(wanted.dtype).smallest_normal) if wanted.dtype.kind == "f" else 0.0
    return np.isfinite(bound) & np.isfinite(sizes) & (bound <= np.maximum(TIGHT * sizes, least))


def _mismatch_text(name: str, found: NDArray, wanted: NDArray, wrong: npt.NDArray[np.bool_]) -> str:
    """Return ``y[3] is 2.0, not 3.0; 2 of 14 are wrong``, of the first that is wrong."""
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    element = name + "".join(f"[{k}]" for k in at)
    return f"{element} is {found[at]}, not {wanted[at]}; {int(wrong.sum())} of {wrong.size} are wrong"


def _in_units(found: NDArray, wanted: NDArray, bound: float | Floats) -> Floats:
    """Return how far elements are off, in the unit of the bound; infinite where nothing may differ."""
    with np.errstate(all="ignore"):
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        same = (found == wanted) | (np.isnan(a) & np.isnan(b))
        units = np.abs(a - b) / bound
    return np.where(same, 0.0, np.where(np.isnan(units), np.inf, units))


@dataclass(frozen=True)
class Difference:
    """A tensor that differs: ``max_error`` as in ``Verdict``, and its line of the mismatches."""

    tensor: str
    max_error: float
    text: str


def first_difference(
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
            verdict = compared({name: given[name]}, {name: wanted}, bounds)
            if not verdict.passed:
                return Difference(name, verdict.max_error, verdict.mismatches[0])
    return None


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
