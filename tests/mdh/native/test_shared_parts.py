"""Parts of a program that differ in names alone are one function of the C that is built."""

from __future__ import annotations

import numpy as np
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.mdh.native.alike_loops import final_with_forms
from polyloom.mdh.native.device import NativeDevice, choose, opened
from polyloom.mdh.native.execution import NativeExecutable, function_of, plain, tree_of
from polyloom.mdh.print.c_source import c_text
from polyloom.mdh.runtime.arguments import Signature, bind
from polyloom.mdh.tree.nodes import For, Function

LAYERS = (
    "float32 h[512] float32 g[512] float32 r[512] "
    "all (i, k) in (512, 512) h[i] += w[i][k] * x[k] "
    "all (j, l) in (512, 512) g[j] += v[j][l] * h[l] "
    "all (i, k) in (512, 512) r[i] += v[k][i] * g[k] "
    "all (i, k) in (512, 512) y[i] += w[i][k] * r[k]"
)
VIEWS = "float32 x[512], float32 w[512][512], float32 v[512][512] -> float32 y[512]"


def test_equal_layers_are_one_function() -> None:
    device = opened(choose("native", threads=2))
    assert isinstance(device, NativeDevice)
    program = host_program(lower(parse(Source("t.lair", f"lair n(): {VIEWS} {{ {LAYERS} }}"))))
    function = function_of(program, plain, device.model)
    every, shared = c_text(function), c_text(function, shares=True)
    assert (len(every.parts), len(shared.parts)) == (4, 3)
    alike = final_with_forms(tree_of(program, plain, device.model))
    assert numbers(alike) == [0, 1, 2, 1]
    assert c_text(alike, shares=True).whole == shared.whole
    rng = np.random.default_rng(0)
    x, w, v = (rng.integers(-2, 3, n).astype(np.float32) for n in [(512,), (512, 512), (512, 512)])
    bound = bind(Signature(program, ("x", "w", "v")), {"x": x, "w": w, "v": v})
    found = NativeExecutable(program, device, plain).run(bound).arrays["y"]
    np.testing.assert_array_equal(found, w @ (v.T @ (v @ (w @ x))))


def numbers(function: Function) -> list[int]:
    return [s.form.number for s in function.body if isinstance(s, For) and s.form is not None]


@pytest.mark.parametrize(
    ("views", "second"),
    [
        ("float32 w[512][512], float32 v[512][600]", "all (i, k) in (512, 512) z[i] += v[i][k] * x[k]"),
        ("float32 w[512][512], float32 v[512][512]", "all (i, k) in (512, 512) z[i] += v[k][i] * x[k]"),
        ("float32 w[512][512], float32 v[512][512]", "all (i, k) in (512, 512) z[i] += v[i][k] * v[i][k]"),
        ("float32 w[512][512], float32 v[512][512]", "all (i, k) in (512, 512) z[i] += v[i][k] - x[k]"),
        ("float32 w[512][512], float32 v[512][512]", "all (i, k) in (512, 500) z[i] += v[i][k] * x[k]"),
    ],
)
def test_layers_that_differ_in_more_than_names_are_not(views: str, second: str) -> None:
    device = opened(choose("native", threads=2))
    assert isinstance(device, NativeDevice)
    first = "all (i, k) in (512, 512) y[i] += w[i][k] * x[k]"
    text = f"lair n(): float32 x[512], {views} -> float32 y[512], float32 z[512] {{ {first} {second} }}"
    tree = tree_of(host_program(lower(parse(Source("t.lair", text)))), plain, device.model)
    assert numbers(final_with_forms(tree)) == [0, 1]
