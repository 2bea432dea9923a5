"""Arrays of a caller that overlap: what is touched of them decides whether a program may run on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polyloom.device_pipeline import load_opencl
from polyloom.diagnostics import PolyloomError
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import choose_device
from polyloom.sources import Reading

SOURCE = """
void kernel(int n, int lo, int hi, int step, long p[n], long q[n], long r[n])
{
#pragma scop
  for (int i = lo; i < hi; i++) {
    p[i] = 3 * q[i + step];
    r[n - 1] += p[i];
  }
#pragma endscop
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> CompiledProgram:
    source = tmp_path_factory.mktemp("parts") / "parts.c"
    source.write_text(SOURCE)
    return load_opencl(source, Reading(), choose_device(None))


def kernel(lo: int, hi: int, step: int, p: Any, q: Any, r: Any) -> None:
    for i in range(lo, hi):
        p[i] = 3 * q[i + step]
        r[-1] += p[i]


APART = {"one array": (0, 30, 30), "downwards": (50, 80, -50), "a gap": (3, 9, 80), "nothing": (5, 5, 0)}
TOGETHER = {"shifted": (0, 30, 29), "the same": (2, 9, 0), "the sum too": (10, 95, 4)}


def three_views(length: int = 100) -> list[Any]:
    """One array under three names: a sum in its last element, and two parts that the sizes choose."""
    array = np.arange(length, dtype=np.int64)
    return [array, array[:], array[::1]]


@pytest.mark.parametrize("name", APART)
def test_parts_that_lie_apart(program: CompiledProgram, name: str) -> None:
    lo, hi, step = APART[name]
    ours, theirs = three_views(), three_views()
    program(100, lo, hi, step, *ours)
    kernel(lo, hi, step, *theirs)
    np.testing.assert_array_equal(ours[0], theirs[0])


@pytest.mark.parametrize("name", TOGETHER)
def test_parts_that_overlap_are_refused(program: CompiledProgram, name: str) -> None:
    arrays = three_views()
    with pytest.raises(PolyloomError) as caught:
        program(100, *TOGETHER[name], *arrays)
    assert "input-alias" in [found.code for found in caught.value.diagnostics]
    np.testing.assert_array_equal(arrays[0], np.arange(100))


def test_views_that_start_elsewhere(program: CompiledProgram) -> None:
    for shift in (1, 7, 16):
        ours, theirs = np.arange(200), np.arange(200)
        for array, run in ((ours, lambda *a: program(100, *a)), (theirs, kernel)):
            run(0, 20, 40, array[shift : 100 + shift], array[2 * shift : 100 + 2 * shift], array[100:])
        np.testing.assert_array_equal(ours, theirs)
