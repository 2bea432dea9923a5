"""What no sample reaches is computed by the host: its values, and that only such layers are taken away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyloom.api.network import compile_one_wafer, simulate_one_wafer
from polyloom.api.reading import load_tensor_program
from polyloom.diagnostics import PolyloomError, Unsupported
from polyloom.report.wafer.network_view import print_network
from polyloom.wafer.network.constants import computed_before, results_before
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
    assert network.before.program.outputs == ("V", "u", "Z")
    w = np.arange(24, dtype=np.float16).reshape(4, 6)
    known = computed_before(network.before, {"W": w, "x": w}, 1)
    assert np.array_equal(known["T"], 2 * w.T)
    assert np.array_equal(known["D"], 2 * w.T)
    assert {"T", "D"} <= {*network.program.inputs}
    assert network.streamed == ("W", "x"), "a weight in another order"


def test_a_counter_of_batches_is_no_layer() -> None:
    loaded = load_tensor_program(BATCH_NORM)
    assert loaded.model is not None
    network = network_of(loaded.program, loaded.model.arguments)
    assert network.before is not None
    assert network.before.program.outputs == ("module_1_num_batches_tracked_new",)
    assert network.streamed == tuple(loaded.model.arguments)


def test_a_counter_of_batches_is_a_state_of_the_host() -> None:
    loaded = load_tensor_program(BATCH_NORM)
    assert loaded.model is not None
    old, new = "module_1_num_batches_tracked", "module_1_num_batches_tracked_new"
    network = network_of(loaded.program, (*loaded.model.arguments, old), {old: new})
    assert network.before is not None
    assert network.before.state == ((old, new),)
    assert network.state == ((old, new),)
    given = loaded.model.constants | {old: np.array(7)}
    known = computed_before(network.before, given, 3)
    assert known[new].tolist() == [8, 9, 10]
    assert results_before(network.before, known, 3)[new] == 10


def test_a_project_has_what_the_host_computes_or_says_what_it_would_have_to_be_given() -> None:
    network = compile_one_wafer(ONES, pes=4)
    assert "network.npz" in network_files(network, "wse3")
    given = network_of(load_tensor_program(WEIGHTS).program, ("x",))
    assert network.plan.network.before is not None
    object.__setattr__(network.plan, "network", given)
    with pytest.raises(Unsupported) as fault:
        network_files(network, "wse3")
    assert fault.value.diagnostics[0].code == "csl-network-constant"


SCHEDULE = (
    DENSE
    + """\
lair next(): int64 n -> int64 m
{
  all () in ()
    m = n + 1
}
lair slower(N): float16 r[N] -> float16 s[N]
{
  all (i) in (N)
    s[i] = r[i] * 0.5
}
graph schedule: float16 x[4], float16 r[4], float16 W[4], int64 n
    -> float16 y[4], float16 V[4], float16 s[4], int64 m, float16 t[4]
{
  m = next()(n)
  s = slower(4)(r)
  t = slower(4)(s)
  V = add(4)(W, x)
  z = add(4)(V, r)
  y = add(4)(z, t)
}
"""
)


@pytest.mark.slow
@pytest.mark.ci
def test_states_that_no_sample_reaches_are_counted_on_by_the_host() -> None:
    x = np.arange(12, dtype=np.float16).reshape(3, 4)
    r, w, n = np.full(4, 8, np.float16), np.array([1, 2, 3, 4], np.float16), np.array(2**40)
    state = {"r": "s", "n": "m", "W": "V"}
    given = {"x": x, "r": r, "W": w, "n": n}
    result = simulate_one_wafer(SCHEDULE, given, samples=3, pes=16, state=state, check=True)
    assert result.check is not None
    assert result.check.passed
    sums = w + np.cumsum(x, axis=0)
    rates = np.array([[8.0], [4.0], [2.0]])
    assert np.array_equal(result.outputs["y"], sums + rates + rates / 4)
    assert np.array_equal(result.outputs["t"], np.broadcast_to(rates / 4, (3, 4)))
    assert np.array_equal(result.outputs["V"], sums[-1])
    assert np.array_equal(result.outputs["s"], np.full(4, 1))
    assert np.array_equal(result.outputs["m"], 2**40 + 3)
    assert result.outputs["m"].dtype == np.int64
    assert {*result.json()["before"]} == {"s", "m", "t"}
    assert [part.name for part in result.stages if not part.name.startswith("hold")] == ["V", "z"]
    again = simulate_one_wafer(SCHEDULE, samples=2, pes=16, state=state, check=True)
    assert again.check is not None
    assert again.check.passed
    with pytest.raises(PolyloomError, match="`r` and `m` differ in shape or type"):
        simulate_one_wafer(SCHEDULE, samples=2, pes=16, state={"r": "m"})
    with pytest.raises(Unsupported) as fault:
        network_files(compile_one_wafer(SCHEDULE, pes=16, state=state), "wse3", given)
    assert fault.value.diagnostics[0].code == "csl-network-constant"


TURNED = (
    DENSE
    + """\
graph turned: float16 P[4][6], float16 x[6][4] -> float16 y[6], float16 Q[4][6]
{
  Q = scale(4, 6)(P)
  T = transpose(4, 6)(P)
  y = rows(6, 4)(T, x)
}
"""
)


def test_a_state_of_the_host_in_another_order_varies_too() -> None:
    network = network_of(load_tensor_program(TURNED).program, ("P", "x"), {"P": "Q"})
    assert network.before is not None
    assert network.before.varying == {"P", "Q", "T"}
    assert network.streamed == ("x",)
    p = np.arange(24, dtype=np.float16).reshape(4, 6)
    known = computed_before(network.before, {"P": p, "x": p}, 2)
    assert np.array_equal(known["T"], np.stack([p.T, 2 * p.T]))
    alone = network_of(load_tensor_program(TURNED).program, ("P", "x"))
    assert alone.before is None
