"""Fills that only the first run needs: which they are, and that later runs are right without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, Parameter, Role, uses
from polyloom.ir.types import ElementType
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import choose_device, open_device
from polyloom.mdh.lowering import invariant_fills
from polyloom.mdh.lowering.invariant_fills import hoisted_fills
from polyloom.mdh.runtime.execution import plain_launch

PADDED = """lair n(): float32 x[4][5] -> float32 y[4][5] {
  float32 p[6][7]
  all (i, j) in (4, 5) p[i + 1][j + 1] += x[i][j]
  all (i, j, r, s) in (4, 5, 3, 3) y[i][j] += p[i + r][j + s]
}"""


def program_of(text: str) -> HostProgram:
    return host_program(lower(parse(Source("t.lair", text))))


def test_padding_is_filled_once() -> None:
    program = program_of(PADDED)
    compiled = CompiledProgram(program, open_device(choose_device("cpu")), plain_launch)
    launches = []
    for seed in range(3):
        x = np.random.default_rng(seed).integers(-9, 10, (4, 5)).astype(np.float32)
        run = compiled.run(x=x)
        launches.append(run.timing.launches)
        np.testing.assert_array_equal(run.arrays["y"], evaluate_host(program, {}, {"x": x})["y"])
    assert launches[1:] == [launches[0] - 1] * 2


def test_fills_that_last() -> None:
    program = program_of(PADDED)
    fill, pad, convolution = program.body
    assert hoisted_fills(program) == {fill}
    for body in (
        (fill, convolution, pad),
        (fill, pad, pad),
        (pad, fill, convolution),
        (fill,),
        (pad, convolution),
    ):
        assert not hoisted_fills(replace(program, body=body)), body
    seen = tuple(replace(b, role=Role.UPDATED) if b.name == "p" else b for b in program.buffers)
    assert not hoisted_fills(replace(program, buffers=seen))


def test_many_fills_do_not_look_at_every_node_each(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = "".join(
        f"float32 p{k}[6] all (i) in (4) p{k}[i + 1] += x{k}[i]"
        f" {f'float32 x{k + 1}[4]' if k < 49 else ''} all (i, r) in (4, 3) x{k + 1}[i] += p{k}[i + r] "
        for k in range(50)
    )
    program = program_of(f"lair n(): float32 x0[4] -> float32 x50[4] {{ {parts} }}")
    asked = []
    monkeypatch.setattr(invariant_fills, "uses", lambda nodes: asked.append(len(nodes)) or uses(nodes))
    assert len(hoisted_fills(program)) == 50
    assert sum(asked) < 3 * len(program.body)


@pytest.mark.parametrize("large", [5, 4])
def test_a_program_with_parameters_fills_every_time(large: int) -> None:
    program = replace(program_of(PADDED), parameters=(Parameter("n", ElementType.INT32),))
    compiled = CompiledProgram(program, open_device(choose_device("cpu")), plain_launch)
    x = np.ones((4, 5), np.float32)
    assert compiled.run(n=1, x=x).timing.launches == compiled.run(n=large, x=x).timing.launches
