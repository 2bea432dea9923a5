"""Functions of whole vectors in C against double precision: units in the last place, and the ends."""

from __future__ import annotations

import ctypes
import math
import subprocess
import tempfile
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

Floats = npt.NDArray[Any]
EXTENDED = np.longdouble
"""Of 64 bits or more: what is measured against."""


def of_c(function: str) -> Callable[[Floats], Floats]:
    """Return a function of the C library on long doubles, which NumPy lacks."""

    def run(given: Floats) -> Floats:
        found = np.ascontiguousarray(given, EXTENDED).copy()
        loop = f"for (long k = 0; k < n; k++) a[k] = {function}(a[k]);"
        text = f"#include <math.h>\nvoid run(long double *a, long n) {{ {loop} }}\n"
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "exact.c").write_text(text)
            command = [*next(c_compilers()).command, "-shared", "-fPIC", "exact.c", "-o", "exact.so", "-lm"]
            subprocess.run(command, cwd=folder, check=True)
            library = ctypes.CDLL(str(Path(folder) / "exact.so"))
        library.run(found.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(found.size))
        return found

    return run


EXACT: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "tanh": np.tanh,
    "erf": of_c("erfl"),
    "erfc": of_c("erfcl"),
}

FLOAT, DOUBLE = ElementType.FLOAT32, ElementType.FLOAT64
MOST = {
    (FLOAT, "exp"): 1.0,
    (FLOAT, "log"): 1.0,
    (FLOAT, "sin"): 1.5,
    (FLOAT, "cos"): 1.5,
    (FLOAT, "sigmoid"): 2.0,
    (FLOAT, "tanh"): 1.5,
    (FLOAT, "erf"): 2.5,
    (FLOAT, "erfc"): 6.5,
    (DOUBLE, "exp"): 1.0,
    (DOUBLE, "log"): 1.0,
    (DOUBLE, "sin"): 1.0,
    (DOUBLE, "cos"): 1.0,
    (DOUBLE, "sigmoid"): 2.0,
    (DOUBLE, "tanh"): 1.5,
    (DOUBLE, "erf"): 2.0,
    (DOUBLE, "erfc"): 6.5,
}
"""By how many units in the last place they may be off."""


def built(
    element: ElementType, family: str, folder: Path, flags: tuple[str, ...]
) -> Callable[[Floats], Floats]:
    language = QUICK_C.noting()
    name, kind = language.helper(family, element, 8), language.type(element, 8)
    text, needs = definitions(language.noted, C)
    of = language.type(element)
    loop = f"for (long k = 0; k < n; k += 8) {{ {kind} v; memcpy(&v, a + k, sizeof v); v = {name}(v);"
    entry = f"void run({of} *a, long n) {{ {loop} memcpy(a + k, &v, sizeof v); }} }}\n"
    headers = "".join(f"#include <{h}>\n" for h in sorted({"stdint.h", "string.h", *needs.headers}))
    (folder / "quick.c").write_text(headers + text + entry)
    compiler = next(c_compilers())
    command = [*compiler.command, "-O2", "-shared", "-fPIC", "-w", *flags, "quick.c", "-o", "quick.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "quick.so"))

    def run(a: Floats) -> Floats:
        found = np.ascontiguousarray(a, element.dtype).copy()
        assert len(found) % 8 == 0
        library.run(found.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(len(found)))
        return found

    return run


def inputs(element: ElementType, family: str) -> Floats:
    rng = np.random.default_rng(3)
    wide = rng.standard_normal(40_000) * 10.0 ** rng.uniform(-8, 1.5, 40_000)
    near = np.concatenate([np.linspace(-12, 12, 40_000), np.linspace(-1.1, 1.1, 20_000)])
    turns = np.arange(-63_200, 63_200) * (np.pi / 2)  # results are near to 0 and to 1
    far = rng.standard_normal(8_000) * 10.0 ** rng.uniform(0, 12, 8_000)
    by_name = {"sin": [turns, far], "cos": [turns, far], "log": [10.0 ** rng.uniform(-44, 38, 40_000)]}
    found = np.concatenate([wide, near, *by_name.get(family, [])]).astype(element.dtype)
    if family == "log":
        return np.abs(found) + element.dtype.type(1e-44)
    return found if family in ("sin", "cos") else np.clip(found, -80, 80)  # beyond: no normal floats


def units(found: Floats, wanted: Floats) -> Floats:
    least = np.finfo(found.dtype).tiny
    place = np.spacing(np.maximum(np.abs(wanted), least).astype(found.dtype)).astype(EXTENDED)
    return np.asarray(np.abs(found.astype(EXTENDED) - wanted) / place)


@pytest.mark.parametrize("flags", [(), ("-march=native", "-ffp-contract=fast")], ids=["plain", "fused"])
@pytest.mark.parametrize(("element", "family"), MOST)
def test_errors_are_as_stated(
    element: ElementType, family: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    given = inputs(element, family)
    wanted = EXACT[family](given.astype(EXTENDED))
    assert units(built(element, family, tmp_path, flags)(given), wanted).max() <= MOST[element, family]


ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 200.0, -200.0, 1e-30]
AT_ENDS = {
    "sigmoid": [0.5, 0.5, 1, 0, np.nan, 1, 0, 0.5],
    "tanh": [0, 0, 1, -1, np.nan, 1, -1, 1e-30],
    "erf": [0, 0, 1, -1, np.nan, 1, -1, 1e-30 * 2 / math.sqrt(math.pi)],
}


@pytest.mark.parametrize(("element", "family"), MOST)
def test_the_ends_are_the_library_s(element: ElementType, family: str, tmp_path: Path) -> None:
    ends = np.array([*ENDS, 1000.0, -1000.0, 1e-310, np.finfo(element.dtype).max, -1.0, 1.0, 1e30, -1e30])
    ends = ends.astype(element.dtype)
    found = built(element, family, tmp_path, ())(ends)
    with np.errstate(all="ignore"):
        wanted = EXACT[family](ends.astype(EXTENDED)).astype(element.dtype)
    np.testing.assert_allclose(found, wanted, rtol=2e-7 if element is FLOAT else 4e-16)
    if element is FLOAT and family in AT_ENDS:
        np.testing.assert_allclose(found[:8], np.array(AT_ENDS[family], element.dtype), rtol=2e-7)
    assert (np.signbit(found) == np.signbit(wanted))[~np.isnan(wanted)].all()


def test_strict_programs_keep_the_library() -> None:
    language = C.noting()
    assert language.helper("exp", ElementType.FLOAT32, 8) == "exp_float32x8"
    text, _ = definitions(language.noted, C)
    assert "expf(a[l])" in text
