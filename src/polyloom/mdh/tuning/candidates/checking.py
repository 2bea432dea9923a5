"""Whether a candidate's results are right.

Small md_homs are compared with the evaluator as a whole. Of large ones the evaluator works out blocks of kept
points, the first and the last of each dimension among them; the first candidate that agrees there (the
cost model's choice, in general) becomes the reference for all elements, kept in a file, so that it outlives
a child process that dies. Results that are not equal are judged by each element's own bound
(``ir/rounding/md_homs``), which is worked out for the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.files import read_arrays, write_arrays
from polyloom.ir.evaluation.md_homs import run_md_hom
from polyloom.ir.host import MdHom, Order
from polyloom.ir.integers import integer
from polyloom.ir.rounding.md_homs import Errors, run_with_errors
from polyloom.ir.scalar_functions.approximate import Floats
from polyloom.ir.verification.comparison import Verdict, compared

NDArray = npt.NDArray[Any]
Arrays = Mapping[str, NDArray]
Box = tuple[range, ...]
Sample = dict[str, tuple[NDArray, NDArray]]

WHOLE = 1 << 22
"""Points up to which the evaluator does everything."""

BLOCK = 1 << 19
"""Points of one block."""

BLOCKS = 6


class Checker:
    """Knows the right results of one md_hom on one set of data."""

    def __init__(self, hom: MdHom, arrays: Arrays, folder: Path, seed: int = 0) -> None:
        """``arrays``: what the md_hom starts from; ``folder``: where the reference is kept."""
        self._hom = hom
        self._before = arrays
        self._outputs = tuple(dict.fromkeys(view.buffer for view in hom.outputs))
        self._file = folder / "reference.npz"
        self._boxes = _boxes(hom, Random(seed))
        self._reference = read_arrays(self._file) if self._file.exists() else None
        if self._reference is None and len(self._boxes) == 1:
            self._keep(self._evaluated(self._boxes[0]))

    def check(self, arrays: Arrays) -> Verdict:
        """Compare what a candidate left in the output buffers."""
        found = {name: arrays[name] for name in self._outputs}
        if self._reference is not None and (equal := compared(found, self._reference, {})).passed:
            return equal
        wanted = {name: array.copy() for name, array in (self._reference or found).items()}
        for sample in self._samples:
            for name, (places, values) in sample.items():
                wanted[name].reshape(-1)[places] = values
        verdict = compared(found, wanted, {})
        if not verdict.passed:
            verdict = compared(found, wanted, self._bounds)
        if verdict.passed and self._reference is None:
            self._keep(found)
        return verdict

    def _keep(self, results: Arrays) -> None:
        self._reference = {name: results[name].copy() for name in self._outputs}
        write_arrays(self._file, self._reference)

    def _started(self, shift: int = 0) -> dict[str, NDArray]:
        """Return all buffers as they start, outputs ``shift`` higher than given."""
        own = {n: np.asarray(self._before[n] + self._before[n].dtype.type(shift)) for n in self._outputs}
        return {**self._before, **own}

    def _evaluated(self, box: Box, shift: int = 0) -> dict[str, NDArray]:
        """Return all buffers after the points of a box."""
        found = self._started(shift)
        with np.errstate(all="ignore"):
            run_md_hom(self._hom, found, {}, box)
        return found

    @cached_property
    def _samples(self) -> list[Sample]:
        return [self._sample(box) for box in self._boxes]

    def _sample(self, box: Box) -> Sample:
        """Return the elements that the points of a box write, as flat indices, and their right values.

        They are those that change, or that come out the same whatever was there before.
        """
        one = self._evaluated(box)
        written = {name: one[name] != self._before[name] for name in self._outputs}
        if not {view.buffer for view in self._hom.inputs} & set(self._outputs):
            other = self._evaluated(box, 1)
            written = {name: where | (one[name] == other[name]) for name, where in written.items()}
        places = {name: np.flatnonzero(where) for name, where in written.items()}
        return {name: (at, one[name].reshape(-1)[at]) for name, at in places.items()}

    @cached_property
    def _bounds(self) -> dict[str, Floats]:
        """How far each element may be off; elsewhere than in the samples by what two of those may at most."""
        found = {name: np.full(self._before[name].shape, np.nan) for name in self._outputs}
        for box, sample in zip(self._boxes, self._samples, strict=True):
            errors: Errors = dict.fromkeys(self._before)
            with np.errstate(all="ignore"):
                run_with_errors(self._hom, self._started(), errors, {}, box)
            for name, (places, _) in sample.items():
                error = errors[name]
                found[name].reshape(-1)[places] = 0.0 if error is None else error.reshape(-1)[places]
        most = 2.0 if len(self._boxes) > 1 else 0.0
        return {name: _elsewhere(bounds, most) for name, bounds in found.items()}


def _elsewhere(bounds: Floats, times: float) -> Floats:
    """Put so many times the largest finite bound where there is none yet."""
    largest = float(np.max(bounds, where=np.isfinite(bounds), initial=0.0))
    return np.where(np.isnan(bounds), times * largest, bounds)


def _boxes(hom: MdHom, rng: Random) -> list[Box]:
    """Return the boxes of points that the evaluator works out: all, or blocks of ``++`` dimensions."""
    extents = [max(0, integer(extent, {})) for extent in hom.extents]
    cut = [k for k, operator in enumerate(hom.combine) if operator.order is Order.CONCATENATE]
    if prod(extents) <= WHOLE or not cut:
        return [tuple(map(range, extents))]
    sizes = list(extents)
    while prod(sizes) > BLOCK and any(sizes[k] > 1 for k in cut):
        longest = max(cut, key=lambda k: sizes[k])
        sizes[longest] = (sizes[longest] + 1) // 2
    corners = [[0] * len(sizes), [n - size for n, size in zip(extents, sizes, strict=True)]]
    drawn = [[rng.randint(0, n - s) for n, s in zip(extents, sizes, strict=True)] for _ in range(BLOCKS - 2)]
    return [
        tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))
        for starts in (*corners, *drawn)
    ]
