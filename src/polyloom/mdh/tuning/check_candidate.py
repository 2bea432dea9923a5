"""Whether a candidate's results are right.

Small md_homs are compared with the evaluator as a whole. Of large ones the evaluator works out blocks of kept
points, the first and the last of each dimension among them; the first candidate that agrees there (the
cost model's choice, in general) becomes the reference for all elements, kept in a file, so that it outlives
a child process that dies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.files import read_arrays, write_arrays
from polyloom.ir.evaluation.md_homs import run_box
from polyloom.ir.host import MdHom, Order
from polyloom.ir.integers import integer
from polyloom.ir.verification.comparison import in_units

NDArray = npt.NDArray[Any]
Arrays = Mapping[str, NDArray]
Box = tuple[range, ...]
Sample = dict[str, tuple[NDArray, NDArray]]

WHOLE = 1 << 22
"""Points up to which the evaluator does everything."""

BLOCK = 1 << 19
"""Points of one block."""

BLOCKS = 6
EXACT_TERMS = 4096
"""Terms above which the tolerance does not grow any more: errors of sums partly cancel."""


@dataclass(frozen=True)
class Verdict:
    """``max_error``: the largest difference; ``fault``: the worst element, empty where all are right."""

    max_error: float
    fault: str = ""


class Checker:
    """Knows the right results of one md_hom on one set of data."""

    def __init__(self, hom: MdHom, arrays: Arrays, folder: Path, seed: int = 0) -> None:
        """``arrays``: what the md_hom starts from; ``folder``: where the reference is kept."""
        self._hom = hom
        self._outputs = tuple(dict.fromkeys(view.buffer for view in hom.outputs))
        self._file = folder / "reference.npz"
        self._terms = min(max(1, _reduced_points(hom)), EXACT_TERMS)
        self._reference = self._kept()
        self._samples: list[Sample] = []
        boxes = _boxes(hom, Random(seed))
        if self._reference is None and len(boxes) == 1:
            self._keep(self._evaluated(boxes[0], arrays))
        elif self._reference is None:
            self._samples = [self._sample(box, arrays) for box in boxes]

    def check(self, arrays: Arrays) -> Verdict:
        """Compare what a candidate left in the output buffers."""
        if self._reference is not None:
            kept = self._reference
            return self._worst((name, arrays[name], kept[name]) for name in self._outputs)
        verdict = self._worst(
            (name, arrays[name].reshape(-1)[places], values)
            for sample in self._samples
            for name, (places, values) in sample.items()
        )
        if not verdict.fault:
            self._keep({name: arrays[name] for name in self._outputs})
        return verdict

    def _kept(self) -> dict[str, NDArray] | None:
        if not self._file.exists():
            return None
        return read_arrays(self._file)

    def _keep(self, results: Arrays) -> None:
        self._reference = {name: results[name].copy() for name in self._outputs}
        write_arrays(self._file, self._reference)

    def _evaluated(self, box: Box, arrays: Arrays, shift: int = 0) -> dict[str, NDArray]:
        """Return all buffers after the points of a box, outputs starting ``shift`` higher than given."""
        found = dict(arrays)
        for name in self._outputs:
            found[name] = np.asarray(arrays[name] + np.asarray(shift, arrays[name].dtype))
        with np.errstate(all="ignore"):
            run_box(self._hom, found, {}, box)
        return found

    def _sample(self, box: Box, arrays: Arrays) -> Sample:
        """Return the elements that the points of a box write, as flat indices, and their right values.

        They are those that change, or that come out the same whatever was there before.
        """
        one = self._evaluated(box, arrays)
        written = {name: one[name] != arrays[name] for name in self._outputs}
        if not {view.buffer for view in self._hom.inputs} & set(self._outputs):
            other = self._evaluated(box, arrays, 1)
            written = {name: where | (one[name] == other[name]) for name, where in written.items()}
        places = {name: np.flatnonzero(where) for name, where in written.items()}
        return {name: (at, one[name].reshape(-1)[at]) for name, at in places.items()}

    def _worst(self, parts: Iterator[tuple[str, NDArray, NDArray]]) -> Verdict:
        worst = 0.0
        for name, found, wanted in parts:
            if np.array_equal(found, wanted):
                continue
            error = in_units(found, wanted, 1.0)
            worst = max(worst, float(error.max()))
            if worst > self._tolerance(wanted):
                return Verdict(worst, _fault(name, found, wanted, error))
        return Verdict(worst)

    def _tolerance(self, wanted: NDArray) -> float:
        if wanted.dtype.kind != "f":
            return 0.0
        finite = np.abs(wanted[np.isfinite(wanted)], dtype=np.float64)
        scale = max(1.0, float(finite.max()) if finite.size else 1.0)
        return 4.0 * self._terms * float(np.finfo(wanted.dtype).eps) * scale


def _fault(name: str, found: NDArray, wanted: NDArray, error: NDArray) -> str:
    at = tuple(int(k) for k in np.unravel_index(int(error.argmax()), error.shape))
    element = name + "".join(f"[{k}]" for k in at)
    return f"{element} is {found[at]}, not {wanted[at]}"


def _reduced_points(hom: MdHom) -> int:
    kept = Order.CONCATENATE
    return prod(integer(e, {}) for e, o in zip(hom.extents, hom.combine, strict=True) if o.order is not kept)


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
