"""Which form of a program goes along rows, and is taken for a processor."""

from __future__ import annotations

import numpy as np
import pytest

from compiled_c import call
from polyloom.diagnostics import Source
from polyloom.frontends.c.read import read_c
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram
from polyloom.mdh.native.device import choose
from polyloom.mdh.native.rows import suited
from polyloom.scop.transform import host_program

HEAD = "void kernel(int h, int w, const unsigned s[h][w], unsigned d[h][w])"
ALONG = "for (int y = 0; y < h; y++) { unsigned r = 0; for (int x = 0; x < w; x++) {"
ACROSS = "for (int x = 0; x < w; x++) { unsigned r = 0; for (int y = 0; y < h; y++) {"
SUMS = "r += s[y][x]; d[y][x] = r + (y ? d[y - 1][x] : 0); } }"
SUMS_ACROSS = "r += s[y][x]; d[y][x] = r + (x ? d[y][x - 1] : 0); } }"


def program(text: str) -> HostProgram:
    (scop,) = read_c(Source("kernel.c", f"{HEAD} {{ {text} }}"))
    return host_program(scop).program


@pytest.mark.parametrize("threads", [1, 2])
def test_loops_that_go_along_rows_stay_where_others_would_cross_them(threads: int) -> None:
    found = program(ALONG + SUMS)
    assert suited(found, choose("native", threads=threads)) is found.in_rows is not None


@pytest.mark.parametrize(
    "text", [ACROSS + SUMS_ACROSS, "for (int y = 1; y < h; y++) d[y][0] += d[y - 1][0];"]
)
def test_loops_that_cross_rows_themselves_have_no_other_form(text: str) -> None:
    assert program(text).in_rows is None


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 9), (7, 5)])
def test_the_numbers_are_those_of_c(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[1])
    arrays = {name: rng.integers(0, 99, shape, np.uint32) for name in "sd"}
    sizes = {"h": shape[0], "w": shape[1]}
    expected = call(f"{HEAD} {{ {ALONG}{SUMS} }}", "kernel", {**sizes, **arrays})
    found = program(ALONG + SUMS).in_rows
    assert found is not None
    given = {b.name: arrays[b.name] for b in found.given}
    np.testing.assert_array_equal(evaluate_host(found, sizes, given)["d"], expected["d"])
