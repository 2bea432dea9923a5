"""Networks on one wafer as CSL projects, run by our own `cslc` and their host programs: the C's bits."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from polyloom.api.network import compile_one_wafer
from polyloom.cli.main import run
from polyloom.folders import write_folder
from polyloom.sources import Reading, load_tensors
from polyloom.wafer.csl_output.limits import machine_for
from polyloom.wafer.network.csl_output.project import network_files
from polyloom.wafer.network.program import NetworkProgram
from polyloom.wafer.network.run import simulate_network
from wafer.network.networks import ALONE, MAPS, MLP, RESIDUAL, TRAINED

Arrays = Mapping[str, np.ndarray]
CNN = Path(__file__).parents[3] / "examples" / "models" / "cnn.onnx"


def built(folder: Path, files: Mapping[str, str | bytes], samples: int) -> None:
    """Write a project and build it for so many samples, by its own command."""
    write_folder(files, {}, folder)
    (script,) = folder.glob("commands_*.sh")
    command = script.read_text().replace("\\\n", " ").splitlines()[3]
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as said:
        assert run(command.replace("invocations:1", f"invocations:{samples}").split()) == 0, said.getvalue()


def on_csl(folder: Path, inputs: Arrays, *more: str) -> tuple[list[int], dict[str, np.ndarray]]:
    """Run a built project; return the cycles in which samples are complete, and the results."""
    np.savez(folder / "inputs.npz", **inputs)
    command = f"cs-python run.py --name out --inputs inputs.npz --outputs outputs.npz {' '.join(more)}"
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as said:
        assert run(command.split()) == 0, said.getvalue()
    (line,) = [line for line in said.getvalue().splitlines() if line.startswith("cycles")]
    assert bool(more) or "SUCCESS" in said.getvalue()
    return [int(word) for word in line.split()[1:]], dict(np.load(folder / "outputs.npz"))


def agree(network: NetworkProgram, inputs: Arrays, samples: int, folder: Path, arch: str) -> list[int]:
    """Run a network both ways and compare the bits; return the cycles of CSL."""
    built(folder, network_files(network, arch), samples)
    cycles, found = on_csl(folder, inputs)
    wanted = simulate_network(network, inputs, samples).outputs
    assert set(found) == set(wanted)
    for name, array in wanted.items():
        assert np.array_equal(found[name].reshape(array.shape), array), name
    return cycles


def perceptron(samples: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    shapes = {"W1": (12, 8), "W2": (6, 12), "x": (samples, 8)}
    return {name: rng.normal(size=shape).astype(np.float16) for name, shape in shapes.items()}


@pytest.mark.slow
@pytest.mark.ci
def test_samples_stream_through_a_perceptron(tmp_path: Path) -> None:
    network = compile_one_wafer(MLP, machine=machine_for("wse2"), maps=MAPS)
    first, *_, before, last = agree(network, perceptron(4), 4, tmp_path / "p", "wse2")
    assert last - before < first, "samples do not overlap"


@pytest.mark.ci
@pytest.mark.slow
def test_a_state_is_what_came_of_the_sample_before(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    shapes = {"W": (3, 2), "e": (5, 3), "x": (5, 2)}
    inputs = {name: rng.integers(-3, 4, shape).astype(np.float16) for name, shape in shapes.items()}
    network = compile_one_wafer(TRAINED, machine=machine_for("wse3"), maps=ALONE, state={"W": "V"})
    agree(network, inputs, 5, tmp_path / "p", "wse3")


@pytest.mark.ci
@pytest.mark.slow
def test_a_tensor_that_two_layers_take(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    shapes = {"W1": (8, 8), "W2": (8, 8), "x": (3, 8)}
    inputs = {name: rng.normal(size=shape).astype(np.float16) for name, shape in shapes.items()}
    agree(compile_one_wafer(RESIDUAL, machine=machine_for("wse2")), inputs, 3, tmp_path / "p", "wse2")


@pytest.mark.slow
def test_a_convolutional_network_with_its_weights(tmp_path: Path) -> None:
    loaded = load_tensors(CNN, Reading())
    assert loaded.model is not None
    network = compile_one_wafer(loaded, machine=machine_for("wse3"))
    built(tmp_path / "p", network_files(network, "wse3", loaded.model.constants), 2)
    image = np.random.default_rng(2).normal(size=(2, *loaded.program.buffer("image").extents))
    given = {"image": image.astype(np.float32)}
    _, found = on_csl(tmp_path / "p", given)
    wanted = simulate_network(network, loaded.model.inputs(given), 2).outputs
    (name,) = wanted
    assert np.array_equal(found[name], wanted[name])


@pytest.mark.slow
@pytest.mark.ci
def test_another_program_gives_other_results(tmp_path: Path) -> None:
    """What shows that the programs and tables are used, and nothing else: a layer's constant, a table."""
    network = compile_one_wafer(MLP, machine=machine_for("wse3"), maps=MAPS)
    files = network_files(network, "wse3")
    role = "s_0.csl"
    text = files[role]
    assert isinstance(text, str)
    assert "@as(f16, 0.0)" in text
    inputs = perceptron(1) | {"x": perceptron(1)["x"][0]}
    results = []
    for number, program in enumerate((text, text.replace("@as(f16, 0.0)", "@as(f16, 2.0)"))):
        folder = tmp_path / str(number)
        built(folder, {**files, role: program}, 1)
        results.append(on_csl(folder, inputs, "--unchecked")[1]["y"])
    assert not np.array_equal(*results)


def test_the_command_names_what_does_not_go_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, maps = tmp_path / "mlp.lair", tmp_path / "maps"
    source.write_text(MLP)
    maps.mkdir()
    for name, text in MAPS.items():
        (maps / f"{name}.map").write_text(text)
    common = ["compile", str(source), "--one-wafer", "--map", str(maps)]
    assert run([*common, "--target", "wafer", "-o", str(tmp_path / "c")]) == 2
    assert "does not go with `--target wafer`" in capsys.readouterr().err
    assert run(["compile", str(source), "--pes", "4", "--target", "csl", "-o", str(tmp_path / "c")]) == 2
    assert run([*common, "--target", "csl", "--arch", "wse3", "-o", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "network.json").read_text())["streamed"] == ["x"]
    layout = (tmp_path / "out" / "layout.csl").read_text()
    assert len(re.findall(r"// the layer `[sy]` and its exchanges", layout)) == 2
