"""Last values that a condition lets through: reductions, with the results of the order of the source."""

from __future__ import annotations

import numpy as np
import pytest
from forms import run, transformed

import polyloom
from polyloom.ir.host import Nest
from polyloom.report.forms_view import form
from samples import LATER

N = 17
LOOPS = {
    "a place": ("for (int i = 0; i < n; i++) if (a[i] > t) x = i;", "range(n)", "i"),
    "counting down": ("for (int i = n - 1; i >= 0; i--) if (a[i] > t) x = i;", "range(n - 1, -1, -1)", "i"),
    "in steps": ("for (int i = 3; i < n; i += 2) if (a[i] > t) x = i + 1;", "range(3, n, 2)", "i + 1"),
    "an element": ("for (int i = 0; i < n; i++) if (a[i] > t) x = b[i];", "range(n)", "b[i]"),
    "another element": (
        "for (int i = 0; i < n; i++) if (a[i] > t) x = b[n - 1 - i] + a[i];",
        "range(n)",
        "b[n - 1 - i] + a[i]",
    ),
    "through a table": ("for (int i = 0; i < n; i++) if (a[i] > t) x = b[at[i]];", "range(n)", "b[at[i]]"),
    "a constant": ("for (int i = 0; i < n; i++) if (a[i] > t) x = 1;", "range(n)", "1"),
}


def text(loop: str) -> str:
    arguments = "int n, int t[1], int a[n], int b[n], int at[n], int out[1]"
    body = loop.replace("> t", "> t[0]")
    return f"void f({arguments}) {{ int x = out[0]; {body} out[0] = x; }}"


def data(n: int, threshold: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    found = {name: rng.integers(-50, 50, n).astype(np.int32) for name in "ab"}
    places = rng.permutation(n).astype(np.int32)
    numbers = {"t": threshold, "out": -7}
    return {**found, "at": places, **{k: np.array([v], np.int32) for k, v in numbers.items()}}


def wanted(loop: tuple[str, str, str], n: int, arrays: dict[str, np.ndarray]) -> int:
    x = -7
    for i in eval(loop[1], {"n": n}):
        if arrays["a"][i] > arrays["t"][0]:
            x = eval(loop[2], {**arrays, "i": i, "n": n})
    return int(x)


@pytest.mark.parametrize("name", LOOPS)
def test_they_are_reductions(name: str) -> None:
    loop = LOOPS[name]
    program = transformed(text(loop[0]))
    assert not any(isinstance(node, Nest) for node in program.body)
    assert "(max)" in form(program) or "(min)" in form(program)
    for n, threshold in ((N, 0), (N, 45), (N, 99), (1, 0), (0, 0)):
        arrays = data(n, threshold)
        found = run(program, {"n": n, **arrays})["out"]
        assert found[0] == wanted(loop, n, arrays), (n, threshold)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "an element" else LATER) for n in LOOPS])
def test_nothing_is_read_where_nothing_was_found(name: str) -> None:
    loop = LOOPS[name]
    program = polyloom.compile(text(loop[0]), device="native", threads=1)
    for n, threshold in ((N, 99), (0, 0), (N, 0)):
        arrays = data(n, threshold)
        left = {k: v.copy() for k, v in arrays.items()}
        program(n=n, **left)
        assert left["out"][0] == wanted(loop, n, arrays)


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < n; i++) if (a[i] > t) { x = i; b[i] = x; }",
        "for (int i = 0; i < n; i++) if (a[i] > x) x = i;",
        "for (int i = 0; i < n; i++) { if (a[i] > t) x = b[i]; b[i] = 3; }",
        "for (int i = 0; i < n; i++) { if (a[i] > t) x = i; if (b[i] > t) x = 2 * i; }",
    ],
)
def test_what_something_else_in_the_loop_uses_is_left_alone(loop: str) -> None:
    program = transformed(text(loop))
    assert "place" not in str([b.name for b in program.buffers])
