"""Random Python functions, compiled, against Python itself: types and values of all that they change."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cases import Outcome
from random_python import PythonFunction, random_function

import polyloom
from polyloom.diagnostics import PolyloomError

LARGE = 1e6
"""Results of floats that are larger are not compared: sums may have cancelled on the way."""


class PythonFunctions:
    """Functions under ``@polyloom.jit``, in the order of their sums."""

    batch = 10

    def judged(self, seeds: Sequence[int]) -> Iterator[Outcome]:
        for seed in seeds:
            yield self._outcome(random_function(seed), seed)

    def again(self, files: Mapping[str, bytes], seed: int) -> Outcome:
        return self._outcome(PythonFunction(files["kernel.py"].decode(), random_function(seed).types), seed)

    def _outcome(self, function: PythonFunction, seed: int) -> Outcome:
        files = {"kernel.py": function.text}
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel = _loaded(function.text, Path(folder) / f"kernel_{seed}.py")
            wanted, given = function.arguments(seed), function.arguments(seed)
            try:
                results = kernel(**wanted)
            except (OverflowError, ZeroDivisionError, TypeError, ValueError, NameError) as raised:
                return Outcome(seed, "skipped", type(raised).__name__, files)
            try:
                found = polyloom.jit(kernel, fp="strict")(**given)
            except PolyloomError as refused:
                return Outcome(seed, "refused", refused.diagnostics[0].code, files)
            except Exception as fault:
                return Outcome(seed, "fault", f"{type(fault).__name__}: {fault}"[:2000], files)
        pairs = [(name, given[name], wanted[name]) for name in function.types]
        pairs += zip(("first", "second", "third"), _tuple(found), _tuple(results), strict=False)
        wrong = [name for name, have, want in pairs if not _same(have, want)]
        return Outcome(seed, "wrong", " ".join(wrong), files) if wrong else Outcome(seed, "right")


def _loaded(text: str, path: Path) -> Callable[..., Any]:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    kernel: Callable[..., Any] = module.kernel
    return kernel


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _same(found: Any, wanted: Any) -> bool:
    if wanted is None:
        return found is None
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    if wanted.dtype.kind != "f":
        return np.array_equal(found, wanted)
    usual = ~(np.abs(wanted) > LARGE)
    near = 1e-4 if wanted.dtype.itemsize < 8 else 1e-5
    return np.allclose(found[usual], wanted[usual], rtol=near, atol=near, equal_nan=True)
