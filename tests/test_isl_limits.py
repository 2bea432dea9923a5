"""No question goes to isl without a limit: not from the API, not from a verb."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import islpy as isl
import pytest

import polyloom
from polyloom.cli.main import run
from polyloom.diagnostics import Unsupported
from polyloom.pipeline import analyse_layer
from polyloom.polyhedra import effort
from polyloom.polyhedra.effort import TooHardError, at_most, none_outside, refusing
from polyloom.sources import Reading, load_host_programs, load_parts
from polyloom.wafer.routing.all_routes import route
from polyloom.wafer.simd.decision import SimdOptions

EXAMPLES = Path(__file__).parents[1] / "examples"
WITHOUT_ISL = {
    "devices",
    "evaluate",
    "from_tensorflow",
    "from_torch",
    "jit",
    "random_inputs",
    "read_model",
    "read_reference",
    "run",
    "trace_tensors",
    "tune",
}


@pytest.fixture
def strict() -> Iterator[None]:
    """Let isl do nothing where no limit has been set."""
    with none_outside():
        yield


def test_every_function_of_the_api_has_a_limit_or_asks_nothing() -> None:
    functions = {name for name in polyloom.__all__ if inspect.isfunction(getattr(polyloom, name))}
    limited = {name for name in functions if hasattr(getattr(polyloom, name), "__wrapped__")}
    assert functions - limited == WITHOUT_ISL


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.usefixtures("strict")
def test_a_loaded_function() -> None:
    gemm = polyloom.load(EXAMPLES / "c" / "gemm.c", n=4, m=4, k=4)
    assert gemm.run().outputs["C"].shape == (4, 4)
    assert gemm.program.outputs and str(gemm.explain())
    assert gemm.simulate(size=(2, 1)).cycles and polyloom.random_inputs(gemm.program)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("name", ["conv1d", "conv8"])
def test_layers(name: str) -> None:
    program = polyloom.read_program(EXAMPLES / f"{name}.lair")
    mapping = polyloom.read_mapping(EXAMPLES / f"{name}.map", program)
    found = polyloom.explain(program, mapping)
    assert found.json()["resources"]
    compiled = polyloom.compile_wafer(program, mapping)
    assert compiled.files
    assert compiled.manifest
    assert polyloom.simulate(program, mapping, check=True).check


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("name", ["gemm", "lu", "histogram", "largest"])
def test_loops(name: str) -> None:
    source = EXAMPLES / "c" / f"{name}.c"
    assert load_parts(source, Reading())
    for loaded in load_host_programs(source, Reading()):
        assert not [r for r in loaded.remarks if r.code == "scop-fallback"]


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "c/gemm.c"],
        ["show", "c/gemm.c", "--json"],
        ["explain", "c/lu.c"],
        ["show", "conv1d.lair"],
        ["explain", "conv1d.lair", "--map", "conv1d.map"],
        ["simulate", "conv1d.lair", "--map", "conv1d.map"],
    ],
    ids=" ".join,
)
def test_verbs(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(EXAMPLES / a) if "." in a else a for a in arguments]
    assert run(files) == 0
    assert capsys.readouterr().out


@pytest.mark.usefixtures("strict")
def test_without_a_limit_isl_does_nothing() -> None:
    with pytest.raises(isl.Error):
        isl.Set("{ [i] : 0 <= i < 4 }").lexmin()


def test_a_whole_command_has_a_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is nothing to fall back to, a diagnostic names the question."""
    monkeypatch.setattr(effort, "WHOLE", 2000)
    assert run(["explain", str(EXAMPLES / "conv1d.lair"), "--map", str(EXAMPLES / "conv1d.map")]) == 3
    said = capsys.readouterr().err
    assert "error[isl-effort]" in said
    assert "2,000" in said


def test_the_innermost_question_is_named() -> None:
    inner = refusing("the SIMD instructions of `f`", 100)
    expected = pytest.raises(Unsupported, match="the SIMD instructions of `f`")
    with expected, refusing("everything", 10_000), inner:
        for k in range(100):
            isl.Set(f"{{ [i] : 0 <= i < {k} }}").lexmin()


def test_the_questions_of_a_map_and_its_routes_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However much isl may spend, it is given up on a statement, a tensor, or a question of its own."""
    said, allowed = [], 10_000.0
    while not said or said[-1]:
        monkeypatch.setattr(effort, "WHOLE", int(allowed))
        run(["simulate", str(EXAMPLES / "conv1d.lair"), "--map", str(EXAMPLES / "conv1d.map")])
        said.append(capsys.readouterr().err)
        allowed *= 1.1
    questions = [text.partition("too long to find ")[2].partition("\n")[0] for text in said[:-1]]
    assert {"where the results of `C` go", "how `x` reaches its PEs"} <= {*questions}
    assert not {"a mapping", "the stages of the layer", "the code of the PEs", ""} & {*questions}


def test_what_the_routes_are_of_is_named() -> None:
    program = polyloom.read_program(EXAMPLES / "conv1d.lair")
    analysis = analyse_layer(program, polyloom.read_mapping(EXAMPLES / "conv1d.map", program), SimdOptions())
    for operations in (10, 1000):
        with pytest.raises(TooHardError, match="the routes of "), at_most(operations):
            route(analysis.graph, analysis.border, 24)
