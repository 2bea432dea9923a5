"""Rows of programs in several places: on two devices, in other processes, on a cluster whose workers die."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.cli.main import run
from polyloom.diagnostics import Unsupported
from polyloom.mdh.split import execution
from polyloom.mdh.split.plan import Cost, Plan, divide

EXAMPLES = Path(__file__).parents[3] / "examples"
GEMM = EXAMPLES / "c" / "gemm.c"
SIZES = ("n=40", "m=24", "k=16")
MLP = """
lair mlp(B): float32 x[B][6], float32 W[5][6], float32 V[3][5] -> float32 y[B][3]
{
  all (b, i, j) in (B, 5, 6) s[b][i] += W[i][j] * x[b][j]
  all (b, i) in (B, 5) h[b][i] = max(s[b][i], 0)
  all (b, k, i) in (B, 3, 5) y[b][k] += V[k][i] * h[b][i]
}"""


def arrays(rows: int) -> list[Any]:
    rng = np.random.default_rng(2)
    return [rng.integers(-4, 5, shape).astype(np.float32) for shape in ((rows, 6), (5, 6), (3, 5))]


def opencl() -> str:
    found = [k for k, d in enumerate(polyloom.devices()) if d.platform != "native"]
    return "cpu" if found else pytest.skip("there is no OpenCL device")


@pytest.mark.slow
@pytest.mark.ci
def test_a_batch_on_two_devices() -> None:
    alone = polyloom.load(MLP, B=11)
    both = polyloom.load(MLP, B=11).over("native", opencl())
    given = arrays(11)
    assert np.array_equal(both(*given), alone(*given))
    plan = both.plan
    assert plan is not None and sum(share.rows for share in plan.shares) == 11
    assert plan.measured is not None and min(plan.measured) > 0
    assert alone.plan is None


@pytest.mark.slow
@pytest.mark.ci
def test_two_devices_of_one_name_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def halves(rows: int, places: Sequence[tuple[str, Cost]]) -> Plan:
        return divide(rows, [(name, Cost(0.0, 1.0)) for name, _ in places])

    monkeypatch.setattr(execution, "divide", halves)
    twice = polyloom.load(MLP, B=12).over("native", "native")
    given = arrays(12)
    assert np.array_equal(twice(*given), polyloom.load(MLP, B=12)(*given))
    assert twice.plan is not None and [share.rows for share in twice.plan.shares] == [6, 6]


@pytest.mark.slow
@pytest.mark.ci
def test_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = [word for size in SIZES for word in ("--param", size)]
    assert run(["run", str(GEMM), *sizes, "--over", f"native,{opencl()}", "--check", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["check"]["passed"] is True
    shares = document["split"]["shares"]
    assert sum(share["rows"] for share in shares) == 40 and len(shares) == 2
    assert run(["run", str(GEMM), *sizes, "--over", "native", "--check"]) == 0
    assert "by these times" in capsys.readouterr().out


def test_what_has_no_rows_is_refused_with_status_3(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["run", str(EXAMPLES / "axpy.lair"), "-D", "N=4", "--over", "native", "--device", "native"])
    assert status == 2
    source = (
        "void f(int n, double y[1], double x[n]) {\n#pragma scop\n"
        "for (int i = 0; i < n; i++) y[0] += x[i];\n#pragma endscop\n}"
    )
    with pytest.raises(Unsupported, match="split-rows"):
        polyloom.load(source).over("native")(4, np.zeros(1), np.ones(4))


@pytest.mark.slow
@pytest.mark.ci
def test_a_batch_on_workers_of_which_one_is_killed() -> None:
    distributed = pytest.importorskip("distributed")
    given = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**given) as cluster, distributed.Client(cluster) as client:
        several = polyloom.load(MLP, B=16).over(cluster=client)
        data = arrays(16)
        want = polyloom.load(MLP, B=16)(*data)
        assert np.array_equal(several(*data), want)
        assert [share.rows for share in several.plan.shares] == [8, 8]
        before = client.run(os.getpid)
        os.kill(min(before.values()), signal.SIGKILL)
        assert np.array_equal(several(*data), want)
        assert set(client.run(os.getpid).values()) != set(before.values())


@pytest.mark.slow
@pytest.mark.ci
def test_the_batch_of_a_model_with_weights_in_other_processes() -> None:
    model, x = network(rows=6)
    want = polyloom.load(model)(x)
    several = polyloom.load(model).over("native", jobs=2)
    for _ in range(2):
        assert np.allclose(several(x), want, rtol=1e-5, atol=1e-6)
    assert len(several.plan.shares) == 3


def network(rows: int) -> tuple[bytes, Any]:
    """Return a convolution, a pooling and a product as an ONNX model, and an input of it."""
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(5)
    weights = {"w": (4, 2, 3, 3), "v": (36, 5)}
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Conv", ["x", "w"], ["c"]),
            onnx.helper.make_node("Relu", ["c"], ["r"]),
            onnx.helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
            onnx.helper.make_node("Flatten", ["p"], ["f"]),
            onnx.helper.make_node("MatMul", ["f", "v"], ["y"]),
        ],
        "network",
        [tensor("x", 1, (rows, 2, 8, 8))],
        [tensor("y", 1, (rows, 5))],
        [
            onnx.numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
            for name, shape in weights.items()
        ],
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
    return model.SerializeToString(), rng.normal(size=(rows, 2, 8, 8)).astype(np.float32)
