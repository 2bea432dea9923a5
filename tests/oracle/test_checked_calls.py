"""Checks of the library: ``compile(check=True)``, ``run``, ``tune``; and what conditions guard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyloom import PolyloomError, run, tune
from polyloom import compile as compile_opencl
from polyloom.mdh import running
from polyloom.mdh.native.device import all_devices
from polyloom.oracle.c_compiler import find_c_compiler
from polyloom.scop import transform

pytestmark = [
    pytest.mark.skipif(not all_devices(), reason="there is no device"),
    pytest.mark.skipif(find_c_compiler() is None, reason="there is no C compiler"),
]

TWO = """
void two(int n, float y[n], const float x[n])
{
  for (int i = 0; i < n; i++) y[i] = 2 * y[i];
  for (int i = 0; i < n; i++) y[i] += x[i];
}
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    (tmp_path / "two.c").write_text(TWO)
    return tmp_path / "two.c"


def floats(n: int) -> Any:
    return np.arange(n, dtype=np.float32)


@pytest.fixture
def in_wrong_order(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = transform.arrange
    monkeypatch.setattr(transform, "arrange", lambda *arguments: tuple(reversed(whole(*arguments))))


@pytest.mark.usefixtures("in_wrong_order")
def test_a_checked_call_raises(two: Path) -> None:
    wrong = compile_opencl(two)(5, floats(5), floats(5))
    np.testing.assert_array_equal(wrong, 4 * floats(5))
    for _ in range(2):
        with pytest.raises(PolyloomError, match="not equal to the C program, built by") as caught:
            compile_opencl(two, check=True)(5, floats(5), floats(5))
    assert caught.value.diagnostics[0].code == "check-mismatch"


def test_a_checked_program_is_checked_for_each_size(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    whole = running._compared

    def compared(program: Any, bound: Any, *arguments: Any, **named: Any) -> Any:
        sizes.append(bound.parameters["n"])
        return whole(program, bound, *arguments, **named)

    monkeypatch.setattr(running, "_compared", compared)
    function = compile_opencl(two, check=True)
    for n in (5, 5, 6, 5, 6):
        np.testing.assert_array_equal(function(n, floats(n), floats(n)), 3 * floats(n))
    assert sizes == [5, 6]


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.usefixtures("in_wrong_order")
def test_what_was_tuned_is_checked(two: Path, tmp_path: Path) -> None:
    function = compile_opencl(two, database=tmp_path / "results.sqlite")
    with pytest.raises(PolyloomError, match="not equal to the C program"):
        tune(function, {"n": 4096}, budget=5, evaluations=2, database=tmp_path / "results.sqlite")


GUARDED = {
    "a store": "if (k[i] >= 0) a[k[i]] = i;",
    "an update": "if (k[i] >= 0) a[k[i]] += i;",
    "a load": "if (k[i] >= 0) b[i] = a[k[i]];",
    "a store after a local": "if (k[i] > 0) { int q = k[i] / 2; a[q] = b[i]; }",
}


@pytest.mark.parametrize("name", GUARDED)
def test_an_access_that_a_condition_guards(name: str, tmp_path: Path) -> None:
    """A subscript that is wrong where nothing is accessed: the device must not access it either."""
    path = tmp_path / "guarded.c"
    head = "void guarded(int n, const int k[n], int a[64], int b[n])"
    path.write_text(f"{head}\n{{ for (int i = 0; i < n; i++) {GUARDED[name]} }}\n")
    k = np.random.default_rng(7).permutation(np.arange(64, dtype=np.int32))
    k[::3] = -(10**8)
    given = {"n": 64, "k": k, "a": np.arange(64, dtype=np.int32), "b": np.arange(64, dtype=np.int32)}
    result = run(compile_opencl(path), given, check=True)
    assert result.passed and result.check is not None and result.check.reading_checked
