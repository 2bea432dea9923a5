"""The thirty algorithms of PolyBench, as benchmarks/loops has them: their forms, and what they compute."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import loop_programs as loops
import numpy as np
import pytest
from forms import read, run

import polyloom
from polyloom.ir.host import HostProgram
from polyloom.report.forms_view import form
from polyloom.scop.transform import host_program
from samples import LATER

FORMS = Path(__file__).parent / "loop_programs.txt"
REALS = {"double": np.float64, "float": np.float32}


@cache
def transformed(name: str, real: str) -> HostProgram:
    return host_program(read(loops.source(name).read_text().replace("REAL double", f"REAL {real}"))).program


def computed_by_c(name: str, given: loops.Values, real: str, folder: Path) -> loops.Values:
    """Return the arrays as the C compiler's code leaves them, in the order of the source."""
    library = loops.built(name, real, folder, ["-O1", "-fwrapv", "-ffp-contract=off"])
    arrays = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}
    loops.call(library, name, arrays, REALS[real])
    return arrays


def assert_close(found: loops.Values, wanted: loops.Values, real: str, what: str) -> None:
    """Each element is off by few roundings of its own size and of a typical element's."""
    eps = float(np.finfo(REALS[real]).eps)
    for name, array in found.items():
        if not isinstance(array, np.ndarray) or not array.shape:
            continue
        expected = wanted[name]
        assert np.isfinite(expected.astype(np.float64)).all(), f"{what} {name}: the data is bad"
        scale = float(np.median(np.abs(expected))) if expected.dtype.kind == "f" else 0.0
        tolerance = {"rtol": 2000 * eps, "atol": 200 * eps * scale} if expected.dtype.kind == "f" else {}
        np.testing.assert_allclose(array, expected, **tolerance, err_msg=f"{what} {name}")


def test_there_are_thirty() -> None:
    assert len(loops.SIZES) == 30
    assert {path.stem for path in loops.FOLDER.glob("*.c")} == set(loops.SIZES)


@pytest.mark.slow
@pytest.mark.ci
def test_some_forms_are_the_known_ones() -> None:
    known = FORMS.read_text().splitlines()
    found = [f"{name}: {form(transformed(name, 'double'))}" for name in list(loops.SIZES)[::2]]
    assert [line for line in found if line not in known] == []


@pytest.mark.slow
@pytest.mark.ci
def test_the_forms_are_the_known_ones(golden: Callable[[Path, str], None]) -> None:
    lines = (f"{name}: {form(transformed(name, 'double'))}\n" for name in loops.SIZES)
    golden(FORMS, "".join(lines))


BOTH = [
    pytest.param(name, real, marks=LATER if k % step else ())
    for real, step in (("double", 2), ("float", 5))
    for k, name in enumerate(loops.SIZES)
]


@pytest.mark.parametrize(("name", "real"), BOTH)
def test_the_host_program_computes_what_c_computes(name: str, real: str, tmp_path: Path) -> None:
    given = loops.values(name, loops.SIZES[name]["mini"], REALS[real])
    found = run(transformed(name, real), given)
    assert_close(found, computed_by_c(name, given, real, tmp_path), real, name)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", loops.SIZES)
def test_the_device_computes_what_c_computes(name: str, real: str, tmp_path: Path) -> None:
    program = polyloom.compile(str(loops.source(name)), defines={"REAL": real})
    for size in ("mini", "small"):
        given = loops.values(name, loops.SIZES[name][size], REALS[real], seed=1)
        wanted = computed_by_c(name, given, real, tmp_path)
        program(**given)
        assert_close(given, wanted, real, f"{name} {size}")
