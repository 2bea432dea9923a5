"""Functions of whole vectors in C against double precision: units in the last place, and the ends."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polyloom.c_compilers import c_compilers
from polyloom.ir.types import ElementType
from polyloom.mdh.print.dialect import QUICK_C, C
from polyloom.mdh.print.helpers import definitions

Floats = npt.NDArray[np.float32]

FUNCTIONS: dict[str, tuple[Callable[[float], float], float]] = {
    "exp": (math.exp, 1.0),
    "sigmoid": (lambda a: 1 / (1 + math.exp(-a)), 2.0),
    "tanh": (math.tanh, 1.5),
    "erf": (math.erf, 2.5),
}
"""What they are, and by how many units in the last place they may be off."""


def built(family: str, folder: Path, flags: tuple[str, ...]) -> Callable[[Floats], Floats]:
    language = QUICK_C.noting()
    name = language.helper(family, ElementType.FLOAT32, 8)
    text, needs = definitions(language.noted, C)
    loop = f"for (long k = 0; k < n; k += 8) {{ float32x8 v; memcpy(&v, a + k, sizeof v); v = {name}(v);"
    entry = f"void run(float *a, long n) {{ {loop} memcpy(a + k, &v, sizeof v); }} }}\n"
    headers = "".join(f"#include <{h}>\n" for h in sorted({"stdint.h", "string.h", *needs.headers}))
    (folder / "quick.c").write_text(headers + text + entry)
    compiler = next(c_compilers())
    command = [*compiler.command, "-O2", "-shared", "-fPIC", "-w", *flags, "quick.c", "-o", "quick.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "quick.so"))

    def run(a: Floats) -> Floats:
        found = np.ascontiguousarray(a, np.float32).copy()
        library.run(found.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(len(found)))
        return found

    return run


def inputs() -> Floats:
    rng = np.random.default_rng(3)
    wide = rng.standard_normal(40_000) * 10.0 ** rng.uniform(-8, 1.5, 40_000)
    near = np.concatenate([np.linspace(-12, 12, 40_000), np.linspace(-1.1, 1.1, 20_000)])
    return np.concatenate([wide, near]).astype(np.float32)


def units(found: Floats, wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    place: Any = np.spacing(np.maximum(np.abs(wanted), np.finfo(np.float32).tiny).astype(np.float32))
    return np.asarray(np.abs(found.astype(np.float64) - wanted) / place, np.float64)


@pytest.mark.parametrize("flags", [(), ("-march=native", "-ffp-contract=fast")], ids=["plain", "fused"])
@pytest.mark.parametrize("family", FUNCTIONS)
def test_errors_are_as_stated(family: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    exact, most = FUNCTIONS[family]
    given = np.maximum(inputs(), -80)  # results below are no normal floats
    given = np.minimum(given, 80)
    wanted = np.array([exact(float(a)) for a in given])
    assert units(built(family, tmp_path, flags)(given), wanted).max() <= most


ENDS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 200.0, -200.0, 1e-30], np.float32)
AT_ENDS = {
    "exp": [1, 1, np.inf, 0, np.nan, np.inf, 0, 1],
    "sigmoid": [0.5, 0.5, 1, 0, np.nan, 1, 0, 0.5],
    "tanh": [0, 0, 1, -1, np.nan, 1, -1, 1e-30],
    "erf": [0, 0, 1, -1, np.nan, 1, -1, 1e-30 * 2 / math.sqrt(math.pi)],
}


@pytest.mark.parametrize("family", FUNCTIONS)
def test_the_ends_are_the_library_s(family: str, tmp_path: Path) -> None:
    found = built(family, tmp_path, ())(ENDS)
    np.testing.assert_allclose(found, np.array(AT_ENDS[family], np.float32), rtol=2e-7)
    if family in ("tanh", "erf"):
        assert np.signbit(found[1])
        assert not np.signbit(found[0])


def test_strict_programs_keep_the_library() -> None:
    language = C.noting()
    assert language.helper("exp", ElementType.FLOAT32, 8) == "exp_float32x8"
    text, _ = definitions(language.noted, C)
    assert "expf(a[l])" in text
