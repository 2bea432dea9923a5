"""Made-up inputs: the same for a seed, small enough for exact sums, as dense as asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Program, evaluate, random_inputs, terms_per_element

ZOO = json.loads((Path(__file__).parents[1].parent / "data" / "zoo.json").read_text())


def program(text: str) -> Program:
    return lower(parse(Source("test.lair", text)))


def product(n: int) -> Program:
    return program(
        f"lair f(): float16 W[8][{n}], float16 x[{n}] -> float16 y[8]"
        f"{{ all (i, j) in (8, {n}) y[i] += W[i][j] * x[j] }}"
    )


def test_a_seed_gives_the_same_arrays() -> None:
    node = product(32)
    first, again, other = random_inputs(node, 3), random_inputs(node, 3), random_inputs(node, 4)
    assert all(np.array_equal(first[n], again[n]) for n in first)
    assert not np.array_equal(first["W"], other["W"])


def test_the_range_shrinks_with_the_number_of_terms() -> None:
    assert np.abs(random_inputs(product(32))["W"]).max() == 2
    assert np.abs(random_inputs(product(1600))["W"]).max() == 1


@pytest.mark.parametrize("n", [3, 511, 512, 2047, 100_000])
def test_sums_are_exact_in_float16(n: int) -> None:
    node = product(n)
    inputs = random_inputs(node)
    exact = inputs["W"].astype(int) @ inputs["x"].astype(int)
    assert np.abs(exact).max() < 2048
    assert np.array_equal(evaluate(node, inputs)["y"], exact)


@pytest.mark.parametrize(
    ("density", "nonzero"), [(1.0, 100), (0.5, 50), (0.0, 0), ({"x": 0.25}, 25), ({}, 100)]
)
def test_density_is_the_fraction_that_is_not_zero(density: float | dict[str, float], nonzero: int) -> None:
    node = program("lair f(): float16 x[100] -> float16 y[100] { all (i) in (100) y[i] = x[i] }")
    assert np.count_nonzero(random_inputs(node, density=density)["x"]) == nonzero


def test_roots_and_logarithms_get_positive_numbers() -> None:
    node = program(
        "lair f(): float32 x[99] -> float32 y[99] { all (i) in (99) y[i] = log(x[i]) + rsqrt(x[i]) }"
    )
    assert (random_inputs(node)["x"] > 0).all()


@pytest.mark.parametrize("entry", ZOO, ids=lambda e: e["name"])
def test_every_layer_gives_finite_results(entry: dict[str, str]) -> None:
    node = program(entry["lair"])
    for array in evaluate(node, random_inputs(node)).values():
        assert np.isfinite(array).all()
        assert np.abs(array.astype(float)).max() < 2048


def test_terms_per_element() -> None:
    node = program(
        "lair t(): float32 d[9], float32 W[3] -> float32 x[11], float32 s"
        "{ all (w, r) in (9, 3) x[w + r] += d[w] * W[r] all (i) in (11) s += x[i] }"
    )
    assert [terms_per_element(s) for s in node.statements] == [3, 11]
