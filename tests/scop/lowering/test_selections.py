"""Selections: the largest value and where it is, beside elements that other statements write."""

from __future__ import annotations

import numpy as np
import pytest

import polyloom
from c_host_programs import host_programs_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import MdHom, Order

TEXT = """
void f(int n, int m, int a[n][m], int best[n], int where[n - {less}])
{{
#pragma scop
  for (int i = 0; i < n; i++) best[i] = 0;
  for (int i = 0; i < n - {less}; i++) where[i] = 0;
  for (int i = 0; i < n - 1; i++)
    for (int j = 0; j < m; j++)
      if (a[i][j] > best[i]) {{ best[i] = a[i][j]; where[i] = j; }}
#pragma endscop
}}
"""


@pytest.mark.parametrize("less", [0, 1], ids=["the same elements", "other elements"])
def test_elements_beside_a_selection(less: int) -> None:
    """Both arrays are written in full before, so neither is an input, as many elements as each may have."""
    (program,) = host_programs_of(TEXT.format(less=less))
    assert [buffer.name for buffer in program.given] == ["a"]
    a = np.random.default_rng(1).integers(-3, 9, (5, 4)).astype(np.int32)
    found = evaluate_host(program, {"n": 5, "m": 4}, {"a": a})
    largest = np.maximum(a[:4].max(1), 0)
    places = np.where(largest > 0, a[:4].argmax(1), 0)
    np.testing.assert_array_equal(found["best"], [*largest, 0])
    np.testing.assert_array_equal(found["where"], [*places, 0][: 5 - less])


LAST = """
void f(int n, {type} a[n], int ok[n], {type} start, {type} out[1], int at[1])
{{
  {type} x = start;
  int k = -1;
  for (int i = 0; i < n; i++)
    if ({condition}) {{ x = a[i]; k = i; }}
  out[0] = x;
  at[0] = k;
}}
"""
INF, NAN = float("inf"), float("nan")
VALUES = {
    "ties": [1, 3, 2, 3, 1],
    "none as large": [1, 2, 2, 1],
    "the least there is": [-INF] * 20,
    "no numbers": [NAN, 1, 3, 3, NAN],
}


def last(values: np.ndarray, ok: np.ndarray, start: float) -> tuple[float, int]:
    """Return what the loop leaves."""
    x, k = start, -1
    for i, value in enumerate(values):
        if ok[i] and value >= x:
            x, k = value, i
    return x, k


@pytest.mark.parametrize("start", [-INF, 3.0, NAN])
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("condition", ["a[i] >= x", "x <= a[i]", "ok[i] && a[i] >= x"])
def test_last_of_equal_values(condition: str, values: str, start: float) -> None:
    text = LAST.format(type="double", condition=condition)
    (program,) = host_programs_of(text)
    a = np.array(VALUES[values] * 40, np.float64)
    ok = np.zeros(a.size, np.int32)
    wanted = last(a, np.ones_like(ok) if "ok" not in condition else ok, start)
    given = {"a": a, "ok": ok, "start": start, "out": np.zeros(1), "at": np.zeros(1, np.int32)}
    scalars = {k: v for k, v in given.items() if k in {b.name for b in program.given}}
    found = evaluate_host(program, {"n": a.size}, scalars)
    np.testing.assert_array_equal([found["out"][0], found["at"][0]], wanted)
    polyloom.load(text, device="native", threads=2)(n=a.size, **given)
    np.testing.assert_array_equal([given["out"][0], given["at"][0]], wanted)


def test_last_of_integers() -> None:
    """The least integer is no sign that there was no point."""
    text = LAST.format(type="int", condition="a[i] >= x")
    a = np.full(300, np.iinfo(np.int32).min, np.int32)
    out, at = np.zeros(1, np.int32), np.zeros(1, np.int32)
    polyloom.load(text, device="native", threads=2)(n=300, a=a, ok=a, start=int(a[0]), out=out, at=at)
    assert (out[0], at[0]) == (a[0], 299)


@pytest.mark.parametrize(
    ("move", "is_reduction"), [("k = i", True), ("k = i - 50", True), ("k = ok[i]", False), ("k = -i", False)]
)
def test_places_of_last_values(move: str, is_reduction: bool) -> None:
    """The last one of equal values is a reduction where its place tells it from none."""
    text = LAST.format(type="double", condition="a[i] >= x").replace("k = i", move)
    (program,) = host_programs_of(text)
    homs = [node for node in program.body if isinstance(node, MdHom)]
    assert any(o.order is Order.POINTWISE for hom in homs for o in hom.combine) is is_reduction
