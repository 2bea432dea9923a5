"""Parts of a program that differ in names alone are one function of the C that is built."""

from __future__ import annotations

import numpy as np

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.mdh.native.device import NativeDevice, choose, opened
from polyloom.mdh.native.execution import NativeExecutable, function_of, plain
from polyloom.mdh.print.c_source import c_text
from polyloom.mdh.runtime.arguments import Signature, bind

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
    rng = np.random.default_rng(0)
    x, w, v = (rng.integers(-2, 3, n).astype(np.float32) for n in [(512,), (512, 512), (512, 512)])
    bound = bind(Signature(program, ("x", "w", "v")), {"x": x, "w": w, "v": v})
    found = NativeExecutable(program, device, plain).run(bound).arrays["y"]
    np.testing.assert_array_equal(found, w @ (v.T @ (v @ (w @ x))))
