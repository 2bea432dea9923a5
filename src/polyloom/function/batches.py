"""A function over more rows than it takes: part after part along the first axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.function.arguments import Argument

NDArray = npt.NDArray[Any]


def in_batches(
    call: Callable[[Mapping[str, NDArray]], Mapping[str, NDArray]],
    inputs: Mapping[str, Argument],
    arrays: Mapping[str, NDArray],
    size: int | None,
) -> dict[str, NDArray]:
    """Call a function on parts of arrays along their first axis, and put its results together.

    ``inputs``: what it takes; the first extent of these, the same of all, is the rows of a part, unless it is
    open: then ``size`` is (None: all at once). Where the function takes a fixed number, what the last part
    lacks is filled with copies of its last row, and cut off the results.

    Errors: ``batch-rows`` where arrays differ in their rows, or there are none; ``batch-size`` where the
    function takes parts of no one size, or its results have other rows than its inputs.
    """
    rows = {np.shape(a)[0] if np.ndim(a) else 0 for a in arrays.values()}
    if len(rows) != 1 or not max(rows):
        counts = ", ".join(f"`{name}`: {list(np.shape(a))}" for name, a in arrays.items())
        raise _fault("batch-rows", "the arrays of a batch have the same rows, at least one", counts)
    (count,) = rows
    extents = {a.shape[0] if a.shape else 0 for name, a in inputs.items() if name in arrays}
    fixed = {extent for extent in extents if isinstance(extent, int)}
    if len(extents) != 1 or fixed == {0}:
        said = ", ".join(f"`{name}`: {a!r}" for name, a in inputs.items())
        raise _fault("batch-size", "the inputs have no first dimension in common", said)
    part = min(fixed, default=size or count)
    if fixed and size not in (None, part):
        raise _fault("batch-size", f"the function takes parts of {part} rows, not of {size}", "")
    found: dict[str, list[NDArray]] = {}
    for first in range(0, count, part):
        here = min(part, count - first)
        lacking = part - here if fixed else 0
        results = call({name: _rows(a, first, here, lacking) for name, a in arrays.items()})
        for name, array in results.items():
            if np.ndim(array) == 0 or len(array) != here + lacking:
                said = f"`{name}`: {list(np.shape(array))} for {here + lacking} rows"
                raise _fault("batch-size", "a result has other rows than the inputs", said)
            found.setdefault(name, []).append(array[:here])
    return {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in found.items()}


def _rows(array: NDArray, first: int, count: int, lacking: int) -> NDArray:
    part = array[first : first + count]
    return np.concatenate([part, np.repeat(part[-1:], lacking, axis=0)]) if lacking else part


def _fault(code: str, message: str, note: str) -> PolyloomError:
    helps = ["give arrays of N rows each, of which the function takes some at a time: `f.batches(x)`"]
    return PolyloomError(error(code, message, notes=[note] if note else [], helps=helps))
