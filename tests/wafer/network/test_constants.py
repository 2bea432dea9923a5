"""What no sample reaches is computed by the host: its values, and that only such layers are taken away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyloom.api.network import compile_one_wafer, simulate_one_wafer
from polyloom.api.reading import load_tensor_program
from polyloom.diagnostics import Unsupported
from polyloom.report.wafer.network_view import print_network
from polyloom.wafer.network.constants import computed_before
from polyloom.wafer.network.csl_output.project import network_files
from polyloom.wafer.network.graph import network_of
from wafer.network.networks import DENSE

ONES = (
    DENSE
    + """\
lair ones(N): -> float16 y[N]
{
  all (i) in (N)
    y[i] = 1
}
lair counted(): -> int64 n
{
  all () in ()
    n = 3
}
graph biased: float16 x[4] -> float16 y[4], int64 n
{
  b = ones(4)()
  n = counted()()
  y = add(4)(x, b)
}
"""
)
WEIGHTS = (
    DENSE
    + """\
graph weights: float16 W[4][6], float16 x[4] -> float16 y[6], float16 V[4][6], float16 u[4], float16 Z[6][4]
{
  V = scale(4, 6)(W)
  T = transpose(4, 6)(V)
  U = transpose(4, 6)(W)
  D = scale(6, 4)(U)
  s = dense(6, 4)(T, x)
  t = dense(6, 4)(D, x)
  W1 = transpose(6, 4)(U)
  W2 = transpose(4, 6)(W1)
  v = dense(6, 4)(W2, x)
  w = add(6)(s, t)
  y = add(6)(w, v)
  Z = transpose(4, 6)(W)
  u = rows(4, 6)(W, W)
}
"""
)
BATCH_NORM = Path(__file__).parents[2] / "data" / "torch" / "batch_norm.train.pt2"


def test_what_no_sample_reaches_is_given_by_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(12, dtype=np.float16).reshape(3, 4)
    result = simulate_one_wafer(ONES, {"x": x}, samples=3, pes=4, check=True)
    assert result.check is not None
    assert result.check.passed
    assert np.array_equal(result.outputs["y"], x + 1)
    assert np.array_equal(result.outputs["n"], [3, 3, 3])
    assert result.outputs["n"].dtype == np.int64
    assert [part.name for part in result.stages] == ["add"]
    assert result.json()["before"] == ["b", "n"]
    print_network(result)
    assert "computes `b`, `n` before" in capsys.readouterr().out


def test_layers_of_weights_only_are_computed_before_and_moves_of_weights_stay() -> None:
    network = network_of(load_tensor_program(WEIGHTS).program, ("x",))
    assert [stage.name for stage in network.stages] == ["s", "t", "v", "w", "y"]
    assert network.program.outputs == ("y",)
    assert network.before is not None
    assert network.before.outputs == ("V", "u", "Z")
    w = np.arange(24, dtype=np.float16).reshape(4, 6)
    known = computed_before(network.before, {"W": w, "x": w})
    assert np.array_equal(known["T"], 2 * w.T)
    assert np.array_equal(known["D"], 2 * w.T)
    assert {"T", "D"} <= {*network.program.inputs}
    assert network.streamed == ("W", "x"), "a weight in another order"


def test_a_counter_of_batches_is_no_layer() -> None:
    loaded = load_tensor_program(BATCH_NORM)
    assert loaded.model is not None
    network = network_of(loaded.program, loaded.model.arguments)
    assert network.before is not None
    assert network.before.outputs == ("module_1_num_batches_tracked_new",)
    assert network.streamed == tuple(loaded.model.arguments)


def test_a_project_has_what_the_host_computes_or_says_what_it_would_have_to_be_given() -> None:
    network = compile_one_wafer(ONES, pes=4)
    assert "network.npz" in network_files(network, "wse3")
    given = network_of(load_tensor_program(WEIGHTS).program, ("x",))
    assert network.plan.network.before is not None
    object.__setattr__(network.plan, "network", given)
    with pytest.raises(Unsupported) as fault:
        network_files(network, "wse3")
    assert fault.value.diagnostics[0].code == "csl-network-constant"
