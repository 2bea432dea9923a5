"""``simulate --per-layer``: a row for each layer, maps of its own, refusals that do not stop the others."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_line import EXAMPLES, Captured, document, failure

from polyloom import read_mapping, read_program, simulate, simulate_layers
from polyloom.api import alike_layers, simulation
from polyloom.cli.main import run
from polyloom.ir.conversion.split_layers import layers_of
from polyloom.ir.program import Program
from polyloom.polyhedra.effort import at_most, spent
from polyloom.wafer.explain.layers import LayerRun
from samples import one_in

MAPS = {
    "h": "size: { PE[2, 1] }\ncompute_map: { h[i, j] -> PE[j//2, 0] }\n",
    "g": "size: { PE[1, 3] }\ncompute_map: { g[i, j] -> PE[0, i] }\n",
    "double": "size: { PE[1, 1] }\ncompute_map: { double_h[i] -> PE[0, 0]; double_z[i] -> PE[0, 0] }\n",
}
NET = """
lair ff<T>(M, N): T W[M][N], T x[N] -> T y[M] { all (i, j) in (M, N) y[i] += W[i][j] * x[j] }
lair double<T>(N): T x[N] -> T z[N] { T h[N]  all (i) in (N) h[i] = x[i] + x[i]  all (i) in (N) z[i] = h[i] }
graph net: float16 A[6][4], float16 B[3][6], float16 x[4] -> float16 z[3]
{
  h = ff<float16>(6, 4)(A, x)
  g = ff<float16>(3, 6)(B, h)
  z = double<float16>(3)(g)
}
"""


@pytest.fixture
def net(tmp_path: Path) -> list[str]:
    (tmp_path / "net.lair").write_text(NET)
    (tmp_path / "maps").mkdir()
    for name, text in MAPS.items():
        (tmp_path / "maps" / f"{name}.map").write_text(text)
    return ["simulate", str(tmp_path / "net.lair"), "--per-layer", "--map", str(tmp_path / "maps")]


@pytest.mark.slow
@pytest.mark.ci
def test_a_table_of_layers(capsys: Captured, net: list[str]) -> None:
    assert run([*net, "--check"]) == 0
    out = capsys.readouterr().out
    figures, tasks = ([line.split() for line in part.splitlines()] for part in out.split("\n\n", 1))
    assert [row[0] for row in figures if row[0] in MAPS] == list(MAPS)
    assert [row[0] for row in tasks if row and row[0] in MAPS] == list(MAPS)
    assert out.count("passed") == 3 and "3 of 3 layers" in out


@pytest.mark.slow
@pytest.mark.ci
def test_the_document(capsys: Captured, net: list[str]) -> None:
    found = document(capsys, [*net, "--check", "--json"])
    layers = found["layers"]
    assert [layer["name"] for layer in layers] == list(MAPS)
    assert [layer["size"] for layer in layers] == [[2, 1], [1, 3], [1, 1]]
    assert all(layer["simulation"]["check"]["passed"] and layer["refusal"] is None for layer in layers)
    assert all(layer["simulation"]["limit"]["cycles"] <= layer["simulation"]["cycles"] for layer in layers)
    assert layers[0]["simd"][0]["strategy"] in ("hull", "exact") and layers[0]["instances"] == 24
    total = found["total"]
    assert total["cycles"] == sum(layer["simulation"]["cycles"] for layer in layers)
    assert (total["layers"], total["simulated"], total["most_pes"]) == (3, 3, 3)


def refused(capsys: Captured, arguments: list[str], status: int) -> tuple[str, str]:
    """The table, and the diagnostics after it."""
    assert run(arguments) == status
    out, err = capsys.readouterr()
    assert "refused" in out and "Traceback" not in err
    return out, err


@pytest.mark.slow
@pytest.mark.ci
def test_a_refused_layer_does_not_stop_the_others(capsys: Captured, net: list[str], tmp_path: Path) -> None:
    wide = "size: { PE[2, 3] }\ncompute_map: { g[i, j] -> PE[7, i] }\n"
    (tmp_path / "maps" / "g.map").write_text(wide)
    out, err = refused(capsys, [*net, "--check"], 1)
    assert out.count("passed") == 2 and "2 of 3 layers" in out
    assert "error[map-" in err and "in the layer `g`" in err and "in the layer `h`" not in err


@pytest.fixture
def _broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that breaks at one layer."""
    monkeypatch.setattr(simulation, "_simulated_layers", broken)


def broken(tasks: Sequence[alike_layers.LayerTask]) -> list[LayerRun]:
    """Simulate layers, in a child, with a compiler that breaks at one of them."""

    def compile_wafer(program: Program, *args: Any, **named: Any) -> Any:
        assert program.name != "g", "a rule is broken"
        return plain(program, *args, **named)

    plain = simulation.compile_wafer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "compile_wafer", compile_wafer)
        return simulation._simulated_layers(tasks)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.usefixtures("_broken")
def test_a_fault_of_ours_in_a_layer_does_not_stop_the_others(capsys: Captured, net: list[str]) -> None:
    out, err = refused(capsys, [*net, "--check"], 70)
    assert out.count("passed") == 2 and "2 of 3 layers" in out
    assert "error[internal-fault]" in err and "AssertionError: a rule is broken" in err
    assert "in the layer `g`" in err and "in the layer `h`" not in err
    assert run([*net, "--debug"]) == 70
    assert "in compile_wafer" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.usefixtures("_broken")
def test_a_fault_of_ours_in_the_document(capsys: Captured, net: list[str]) -> None:
    assert run([*net, "--json"]) == 70
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert [layer["refusal"] and layer["refusal"][0]["code"] for layer in layers] == [
        None,
        "internal-fault",
        None,
    ]


def deadly(tasks: Sequence[alike_layers.LayerTask]) -> list[LayerRun]:
    """Simulate layers; nobody survives one of them."""
    if tasks[0].layer.name == "g":
        os.kill(os.getpid(), signal.SIGKILL)
    return simulation._simulated_layers(tasks)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("jobs", one_in(3, [[], ["--jobs", "1"], ["--jobs", "2"]], start=1))
def test_a_death_in_a_layer_does_not_stop_the_others(
    capsys: Captured, net: list[str], monkeypatch: pytest.MonkeyPatch, jobs: list[str]
) -> None:
    monkeypatch.setattr(simulation, "_simulated_layers", deadly)
    out, err = refused(capsys, [*net, "--check", *jobs], 1)
    assert out.count("passed") == 2 and "2 of 3 layers" in out
    assert "error[worker-lost]" in err and "SIGKILL" in err
    assert "in the layer `g`" in err and "in the layer `h`" not in err


def test_a_layer_has_a_limit_of_its_own() -> None:
    """What it asks isl for is not taken from the others: of many layers the last ones were refused."""
    program = read_program(NET)
    with at_most(10**9):
        assert simulate_layers(program, maps=MAPS).fault() is None
        together = spent()
    first = layers_of(program)[0]
    with at_most(10**9):
        simulate(first.program, read_mapping(MAPS[first.name], first.program))
        assert together < spent()


@pytest.mark.slow
@pytest.mark.ci
def test_what_does_not_fit_is_unsupported(capsys: Captured, net: list[str]) -> None:
    _, err = refused(capsys, [*net, "--memory", "10"], 3)
    assert "error[wafer-memory]" in err and "in the layer `h`" in err


@pytest.mark.slow
@pytest.mark.ci
def test_maps_that_are_missing_are_chosen_and_written(
    capsys: Captured, net: list[str], tmp_path: Path
) -> None:
    (tmp_path / "maps" / "g.map").unlink()
    written = tmp_path / "written"
    found = document(capsys, [*net, "--write-map", str(written), "--json"])
    chosen = found["layers"][1]
    assert len(chosen["candidates"]) > 1 and not found["layers"][0]["candidates"]
    assert sorted(path.name for path in written.iterdir()) == ["double.map", "g.map", "h.map"]
    assert (written / "g.map").read_text() == chosen["map"]
    again = document(capsys, [*net[:-1], str(written), "--json"])
    assert [a["simulation"]["cycles"] for a in again["layers"]] == [
        a["simulation"]["cycles"] for a in found["layers"]
    ]


@pytest.mark.parametrize("option", [["--outputs", "o.npz"], ["--watch", "0,0"], ["--invocations", "2"]])
def test_options_of_one_layer(capsys: Captured, net: list[str], option: list[str]) -> None:
    assert f"{option[0]}` is of one layer" in failure(capsys, [*net, *option], 2)


def test_maps_are_in_a_folder(capsys: Captured, net: list[str]) -> None:
    file = str(EXAMPLES / "conv1d.map")
    assert "error[map-folder]" in failure(capsys, [*net[:-1], file], 1)


def test_a_layer_gets_what_the_layers_before_compute() -> None:
    found = simulate_layers(read_program(NET), maps=MAPS, check=True)
    assert found.fault() is None
    whole = {name: r.outputs for name, r in zip(MAPS, found.results, strict=True)}
    assert (whole["double"]["z"] == 2 * whole["g"]["g"]).all()


@pytest.mark.slow
@pytest.mark.ci
def test_a_page_of_layers(capsys: Captured, net: list[str], tmp_path: Path) -> None:
    page = tmp_path / "layers.html"
    assert run([*net, "--memory", "10", "--report", str(page)]) != 0
    assert "refused" in page.read_text()
    assert run([*net, "--check", "--report", str(page)]) == 0
    text = page.read_text()
    assert text.count(">passed<") == 3 and all(f">{name}</a>" in text for name in MAPS)
    capsys.readouterr()


COUNTED = """
lair add<T>(): T x -> T y { all () in () y = x + 1 }
lair twice<T>(N): T x[N] -> T z[N] { all (i) in (N) z[i] = x[i] + x[i] }
graph net: float16 x[4], int64 steps -> float16 z[4], int64 counted
{
  counted = add<int64>()(steps)
  z = twice<float16>(4)(x)
}
"""


@pytest.mark.slow
@pytest.mark.ci
def test_a_counter_of_another_type_is_left_to_the_host(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "net.lair").write_text(COUNTED)
    assert run(["simulate", str(tmp_path / "net.lair"), "--per-layer"]) == 0
    out = capsys.readouterr().out
    assert "1 layer is left to the host (add)" in out and "no int64" in out and "1 of 2 layers" in out


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    "text",
    [
        COUNTED.replace("int64 counted", "int64 counted, int64 more").replace(
            "  z =", "  more = add<int64>()(counted)\n  z ="
        ),
        COUNTED.replace("float16", "float64"),
    ],
    ids=["read by another", "nothing left"],
)
def test_what_others_need_is_refused(capsys: Captured, tmp_path: Path, text: str) -> None:
    (tmp_path / "net.lair").write_text(text)
    assert run(["simulate", str(tmp_path / "net.lair"), "--per-layer"]) == 3
    assert "error[wafer-type]" in capsys.readouterr().err


ALIKE = """
lair first<T>(N): T x[N], T b[N] -> T y[N] { all (i) in (N) y[i] = x[i] - b[i] }
graph net: float16 x[4], float16 b[4], float16 c[4] -> float16 z[4]
{
  y = first<float16>(4)(x, b)
  z = first<float16>(4)(c, y)
}
"""


@pytest.mark.slow
@pytest.mark.ci
def test_layers_that_are_alike_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def compile_wafer(program: Program, *args: Any, **named: Any) -> Any:
        compiled.append(program.name)
        return plain(program, *args, **named)

    plain = simulation.compile_wafer
    monkeypatch.setattr(simulation, "compile_wafer", compile_wafer)
    program = read_program(ALIKE)
    found = simulate_layers(program, check=True)
    assert compiled == ["y"] and found.fault() is None
    assert [list(r.outputs) for r in found.results] == [["y"], ["z"]]
    monkeypatch.setattr(alike_layers, "alike_text", lambda program: program.name)
    apart = simulate_layers(program, check=True)
    assert compiled == ["y", "y", "z"]
    for one, other in zip(found.layers, apart.layers, strict=True):
        assert one.json() == other.json()
        assert one.result is not None and other.result is not None
        assert all((one.result.outputs[n] == a).all() for n, a in other.result.outputs.items())


def test_a_refusal_has_the_names_of_each_layer() -> None:
    found = simulate_layers(read_program(ALIKE.replace("float16", "float64")))
    messages = [[d.message for d in run.refusal.diagnostics] for run in found.layers if run.refusal]
    assert [any(f"`{n}`" in m for m in told) for n, told in zip("bc", messages, strict=True)] == [True, True]
    assert not any("`b`" in m or "`x`" in m for m in messages[1])


@pytest.mark.slow
@pytest.mark.ci
def test_a_padded_convolution_of_which_some_pes_send_in_turn(capsys: Captured, tmp_path: Path) -> None:
    """On the PEs between two borders nothing says that all places are one function of the coordinates."""
    rng = np.random.default_rng(1)
    weights = [rng.random(shape, np.float32) - 0.5 for shape in ((8, 4, 3, 3), (8,))]
    constants = [onnx.numpy_helper.from_array(w, name) for w, name in zip(weights, "Wb", strict=True)]
    node = onnx.helper.make_node("Conv", ["x", "W", "b"], ["y"], pads=[1, 1, 1, 1])
    x, y = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, channels, 8, 8])
        for name, channels in (("x", 4), ("y", 8))
    )
    path = tmp_path / "convolution.onnx"
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "net", [x], [y], constants)), path)
    assert run(["simulate", str(path), "--per-layer", "--check"]) == 0
    assert "passed" in capsys.readouterr().out
