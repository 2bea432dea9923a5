"""What was taken for granted of the parameters is part of the host program, and checked before it runs."""

from __future__ import annotations

import numpy as np
import pytest

from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_c
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.scop.transform import ReductionMode, host_program

ASSUMING = {
    "rows that do not overlap": (
        "int n, int m, int k, double a[n * k + m]",
        "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[i * k + j] += j;",
        {"n": 4, "m": 5, "k": 5},
        {"n": 4, "m": 5, "k": 2},
    ),
    "unsigned that does not wrap": (
        "unsigned n, double a[n]",
        "for (unsigned i = 0; i < n - 1; i++) a[i] = 1;",
        {"n": 25},
        {"n": 0},
    ),
    "a pointer that stays in its row": (
        "int n, int m, int k, double a[n][m]",
        "double *p = &a[0][0]; for (int i = 0; i < k; i++) p[i] = i;",
        {"n": 4, "m": 5, "k": 5},
        {"n": 4, "m": 5, "k": 6},
    ),
}


@pytest.mark.parametrize("mode", ReductionMode)
@pytest.mark.parametrize("name", ASSUMING)
def test_what_is_assumed_is_checked(name: str, mode: ReductionMode) -> None:
    arguments, body, good, bad = ASSUMING[name]
    text = f"void f({arguments}) {{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"
    (scop,) = read_c(Source("f.c", text))
    program = host_program(scop, mode).program
    shape = (4, 5) if "[m]" in arguments else (4, 5) if len(program.buffers[0].shape) == 2 else (25,)
    evaluate_host(program, good, inputs(program, shape))
    with pytest.raises(PolyloomError) as refusal:
        evaluate_host(program, bad, inputs(program, shape))
    assert refusal.value.diagnostics[0].code == "parameter-value"


def inputs(program, shape):  # type: ignore[no-untyped-def]
    return {b.name: np.zeros(shape) for b in program.buffers if b.role.name in ("INPUT", "UPDATED")}


def test_what_wraps_on_the_way_to_a_subscript_asks_nothing_of_the_sizes() -> None:
    """In C ``y + (size_t)-1`` is ``y - 1``: nothing is taken for granted of ``dy`` or of the sizes."""
    text = """#include <stddef.h>
    void f(size_t h, size_t w, double a[h * w], double b[h * w]) {
      for (size_t y = 1; y + 1 < h; y++)
        for (size_t x = 1; x + 1 < w; x++)
          for (int dy = -1; dy <= 1; dy++)
            b[y * w + x] += a[(y + dy) * w + (x + dy)];
    }"""
    (scop,) = read_c(Source("f.c", text))
    program = host_program(scop).program
    found = evaluate_host(program, {"h": 20, "w": 30}, {"a": np.ones((20, 30)), "b": np.ones((19, 30))})
    assert found["b"][1, 1] == 4
