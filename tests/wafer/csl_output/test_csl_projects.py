"""Layers as CSL projects, compiled by our own `cslc` and run by their host programs: C's bits."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import islpy as isl
import numpy as np
import pytest
from corpus import Layer, layers
from csl_round_trip import compared, on_csl

from polyloom.cli.main import run
from polyloom.diagnostics import Unsupported
from polyloom.folders import write_folder
from polyloom.ir import random_inputs
from polyloom.ir.expressions import Binary, Read, Unary
from polyloom.ir.scalar_functions.function import BINARY, UNARY
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import Name, Number, Operation
from polyloom.wafer.csl_output import text
from polyloom.wafer.csl_output.layout import Area, Frame, Routed, layout_file
from polyloom.wafer.csl_output.limits import local_tasks, machine_for, single_elements
from polyloom.wafer.csl_output.project import project_files
from polyloom.wafer.csl_output.role import role_file
from polyloom.wafer.mapping.grid import Grid
from polyloom.wafer.pe_program.tree import Compute, Discard, Received, RoleCode, SetValue
from polyloom.wafer.program.wafer_program import WaferProgram, compile_program
from polyloom.wafer.simd.decision import SimdMode, SimdOptions

EXAMPLES = Path(__file__).parents[3] / "examples"
BY_MAP = {layer.name: layer for layer in layers()}
LATER = [pytest.mark.slow, pytest.mark.ci]
CASES = [
    ("conv1d", "wse2", "auto"),  # value-position pairs, an end of chunk, a stride of -1
    ("ff44_dense M=32 N=16", "wse3", "auto"),  # scalars from a queue, a chain of two colors
    pytest.param("ff44 M=32 N=16", "wse3", "off", marks=LATER),  # loops
    pytest.param("ff44 M=30 N=13", "wse2", "auto", marks=LATER),  # nothing divides: sizes by PE
    pytest.param("ff44 M=32 N=16 T=int16", "wse2", "auto", marks=LATER),
    pytest.param("attention Q=6 T=6 D=4", "wse3", "auto", marks=LATER),  # infinities, words of floats
    pytest.param("conv2d", "wse2", "auto", marks=LATER),  # outer indices, several chunks
    pytest.param("maxpool", "wse3", "auto", marks=LATER),
    pytest.param("training", "wse2", "auto", marks=LATER),  # a state, results on four sides
    pytest.param("depthwise_training C=4 H=5", "wse3", "auto", marks=LATER),  # shapes known when it runs
]


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(("name", "arch", "simd"), CASES)
def test_csl_gives_the_bits_of_c(name: str, arch: str, simd: str) -> None:
    assert compared(BY_MAP[name], arch, simd).startswith("equal")


def compiled(layer: Layer, arch: str) -> WaferProgram:
    machine = machine_for(arch)
    return compile_program(layer.analyse(SimdOptions(SimdMode.AUTO, machine=machine)), machine)


def test_another_constant_gives_other_results(tmp_path: Path) -> None:
    """What shows that the program is run, and nothing else."""
    layer = BY_MAP["conv1d"]
    files = project_files(compiled(layer, "wse2"), "wse2")
    name = next(n for n in files if n.startswith("C_"))
    changed = files[name].replace(
        "@fmovh(initialize_y, @as(f16, 0.0))", "@fmovh(initialize_y, @as(f16, 1.0))"
    )
    assert changed != files[name]
    inputs = random_inputs(layer.program())
    results = []
    for number, program in enumerate((files[name], changed)):
        folder = tmp_path / str(number)
        write_folder({**files, name: program}, {}, folder)
        results.append(on_csl(folder, "wse2", inputs)[1]["y"])
    assert not np.array_equal(*results)


def test_the_command_writes_a_project_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    layer, place = str(EXAMPLES / "conv1d.lair"), str(EXAMPLES / "conv1d.map")
    folder = tmp_path / "out"
    assert (
        run(["compile", layer, "--map", place, "--target", "csl", "--arch", "wse3", "-o", str(folder)]) == 0
    )
    written = {path.name for path in folder.iterdir()}
    assert {
        "layout.csl",
        "run.py",
        "layer.json",
        "reference.py",
        "commands_wse3.sh",
        "manifest.json",
    } <= written
    monkeypatch.chdir(folder)
    commands = (folder / "commands_wse3.sh").read_text().replace("\\\n", " ").splitlines()
    for command in commands[3:]:
        words = command.replace("cs_python", "cs-python").split()
        assert run(words) == 0
    assert re.search(r"cycles \d+\nSUCCESS\n$", capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.ci
def test_samples_one_after_another(tmp_path: Path) -> None:
    """Three samples; the map's state is what the last one leaves, so a layer without one is taken."""
    layer = BY_MAP["ff44_dense M=32 N=16"]
    files = project_files(compiled(layer, "wse2"), "wse2")
    write_folder(
        {**files, "layout.csl": files["layout.csl"].replace("u16 = 1", "u16 = 3")}, {}, tmp_path / "p"
    )
    rng = np.random.default_rng(5)
    weights, x = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((32, 16), (3, 16)))
    (tmp_path / "p" / "out.json").touch()
    found = samples_on_csl(tmp_path / "p", {"W": weights, "x": x})
    assert np.array_equal(found, x.astype(np.float64) @ weights.T.astype(np.float64))


def samples_on_csl(folder: Path, inputs: dict[str, np.ndarray]) -> np.ndarray:
    (folder / "out.json").unlink()
    text = (folder / "run.py").read_text()
    assert 'get("invocations", 1)' in text
    (folder / "run.py").write_text(text.replace('get("invocations", 1)', 'get("invocations", 3)'))
    return on_csl(folder, "wse2", inputs)[1]["y"]


def test_what_memcpy_needs_is_not_used() -> None:
    for arch in ("wse2", "wse3"):
        files = project_files(compiled(BY_MAP["ff44 M=32 N=16"], arch), arch)
        text = "\n".join(files[name] for name in files if name.endswith(".csl"))
        queues = {int(n) for n in re.findall(r"@get_(?:in|out)put_queue\((\d+)\)", text)}
        tasks = {int(n) for n in re.findall(r"@get_local_task_id\((\d+)\)", text)}
        assert queues and min(queues) >= 2
        assert tasks and not tasks & {21, 22, 23, 27, 28, 29, 30, 31}
        assert arch == "wse2" or min(tasks) >= 8
        assert json.loads(files["layer.json"])["csl"]["arch"] == arch


def test_too_many_tasks() -> None:
    assert len(set(local_tasks(20, "wse2", frozenset({0, 24}), "r")) & {0, 24}) == 0
    with pytest.raises(Unsupported, match="csl-tasks"):
        local_tasks(25, "wse3", frozenset(), "r")


def test_a_function_without_csl() -> None:
    with pytest.raises(Unsupported, match="csl-function"):
        text.scalar(Unary(UNARY["erf"], Read(0, ElementType.FLOAT32)), {0: "x"})


def test_constants_that_have_no_literal() -> None:
    assert text.literal(-math.inf, ElementType.FLOAT16) == "@bitcast(f16, @as(u16, 0xfc00))"
    assert text.literal(math.inf, ElementType.FLOAT32) == "@bitcast(f32, @as(u32, 0x7f800000))"
    assert text.literal(0.1, ElementType.FLOAT16) == "@as(f16, 0.0999755859375)"
    assert text.literal(-3, ElementType.INT16) == "@as(i16, -3)"


def test_an_integer_is_a_condition_where_it_is_not_0() -> None:
    odd = Operation("%", (Name("PE_X"), Number(2)))
    small = Operation("<", (Name("PE_Y"), Number(3)))
    assert text.integer(Operation("?", (odd, Number(1), Number(-1)))) == "(if ((PE_X & 1) != 0) 1 else (-1))"
    assert text.condition_text(Operation("and", (odd, small))) == "(((PE_X & 1) != 0) and (PE_Y < 3))"


def test_two_elements_of_a_queue_in_one_expression() -> None:
    kind = ElementType.FLOAT32
    two = Binary(BINARY["+"], Read(0, kind), Read(1, kind))
    received = tuple((k, Received("x_in", kind)) for k in range(2))
    code = RoleCode(
        name="r_0",
        comment=(),
        arrays=(),
        counters=(),
        inputs=("x_in",),
        outputs=(),
        operands=(),
        main=(Discard(Compute(Read(0, kind), received[:1])), SetValue("v_1", kind, Compute(two, received))),
        data_tasks=(),
        local_tasks=(),
    )
    with pytest.raises(Unsupported, match="csl-form"):
        role_file(code, "wse2", frozenset())


def test_wavelets_of_a_color_from_two_sides() -> None:
    here = isl.Set("{ PE[0, 0:3] }")
    routes = (Routed(here, "3", "west", ("ramp",)), Routed(here, "3", "ramp", ("east",)))
    frame = Frame(Grid(2, 4), 0, 0, 0, 0)
    with pytest.raises(Unsupported, match="csl-route"):
        layout_file(frame, [Area("all", frame.pes, (0, 0), (), routes)], {})


@pytest.mark.parametrize(
    ("name", "codes"), [("conv1d", ["csl-single-elements"]), ("fc_batched_dense B=3 M=16 N=8 T=float32", [])]
)
def test_pairs_of_elements_that_are_not_sent_are_said(name: str, codes: list[str]) -> None:
    analysis = compiled(BY_MAP[name], "wse2").analysis
    assert [d.code for d in single_elements(analysis, "wse2")] == codes
