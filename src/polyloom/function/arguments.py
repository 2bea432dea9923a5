"""What a function takes and gives, by name: types and shapes; and arrays made ready for a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.scalar_functions.narrow_formats import FORMATS, dtype_of
from polyloom.mdh.runtime.exchange import as_numpy, is_foreign, like

UNUSED = "unused"
"""The type of an argument of C that the function does not use."""


@dataclass(frozen=True)
class Argument:
    """A tensor or number that a function takes or gives.

    ``shape``: its extents; where they follow from arguments (C) or are open (models), as text (``n + 1``).
    """

    name: str
    type: str
    shape: tuple[int | str, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements in NumPy; of narrow formats that of ``ml_dtypes`` where it is there."""
        form = FORMATS.get(self.type)
        return np.dtype(self.type) if form is None else dtype_of(self.type) or form.held.dtype

    def __repr__(self) -> str:
        return self.type + "".join(f"[{extent}]" for extent in self.shape)


def named(
    names: Sequence[str],
    arrays: Sequence[Any],
    given: Mapping[str, Any],
    whose: object,
    every: Sequence[str] = (),
) -> dict[str, Any]:
    """Return arguments by name; errors show ``whose``.

    ``every``: the names of a model's inputs, with those that no result depends on; all may be given in order.

    Errors: ``argument-count``, ``argument-twice``.
    """
    if len(arrays) > len(names):  # a program of PyTorch has no input where its example was None
        arrays = [array for array in arrays if array is not None]
    if len(names) < len(arrays) == len(every):
        pairs = [(name, array) for name, array in zip(every, arrays, strict=True) if name in names]
        names, arrays = [name for name, _ in pairs], [array for _, array in pairs]
    if len(arrays) > len(names):
        message = f"{len(arrays)} arguments for {len(names)}"
        unused = ", ".join(f"`{name}`" for name in every if name not in names)
        notes = [f"no result depends on {unused}"] if unused else []
        raise PolyloomError(error("argument-count", message, notes=notes, helps=[f"`{whose!r}`"]))
    found = dict(zip(names, arrays, strict=False))
    twice = [name for name in given if name in found]
    if twice:
        raise PolyloomError(error("argument-twice", f"`{twice[0]}` is given twice", helps=[f"`{whose!r}`"]))
    return {**found, **given}


@dataclass(frozen=True, eq=False)
class Taken:
    """Arguments as arrays of NumPy, and those as they came that were of another library."""

    arrays: dict[str, Any]
    foreign: dict[str, Any]

    def given_back(self, results: Mapping[str, Any], narrow: Mapping[str, str] | None = None) -> list[Any]:
        """Return results as arrays of the library that the first foreign argument is of.

        ``narrow``: the formats of those that programs hold in wider types. What is an argument changed in
        place is that argument.
        """
        if not self.foreign:
            return list(results.values())
        pattern = next(iter(self.foreign.values()))
        own = {id(self.arrays[name]): value for name, value in self.foreign.items()}
        return [
            own[id(r)] if id(r) in own else like(pattern, r, (narrow or {}).get(name, ""))
            for name, r in results.items()
        ]


def taken(given: Mapping[str, Any]) -> Taken:
    """Return arguments with the arrays of other libraries as NumPy's. Errors: ``input-exchange``."""
    foreign = {name: value for name, value in given.items() if is_foreign(value)}
    return Taken({**given, **{name: as_numpy(value, name) for name, value in foreign.items()}}, foreign)
