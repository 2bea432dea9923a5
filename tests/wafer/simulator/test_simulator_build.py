"""Building and its cache; several simulations at once; the machine files; the wrapper's own checks."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
import threading
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated import CS2, INSTRUCTIONS, ONE_PE, changed, fabric, files_of, one_pe, role_text, set_memory
from test_simulator_programs import chain, summary

from polyloom.diagnostics import PolyloomError
from polyloom.wafer.machine.model import load_machine, machines
from polyloom.wafer.simulator.build import BuildFailure, build_program
from polyloom.wafer.simulator.compilers import NATIVE, choose_compiler, find_compiler, try_compiler

SMALL = {"P.c": role_text("half a[1];", "static void main(void) {}"), "layout.c": ONE_PE}
OTHER = {"Q.c": "", "layout.c": "int a;"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that has the simulator, which takes a second to compile, and another program."""
    folder = tmp_path_factory.mktemp("store")
    build_program(OTHER, INSTRUCTIONS, folder=folder)
    return folder


@pytest.fixture
def cache(store: Path, tmp_path: Path) -> Path:
    """A cache of one test, with what is in ``store``."""
    return Path(shutil.copytree(store, tmp_path / "cache"))


@pytest.mark.slow
@pytest.mark.ci
def test_what_was_built_is_found_again(cache: Path) -> None:
    before = {path: path.stat().st_ino for path in cache.glob("*.*o")}
    assert len(before) == 5  # the simulator, its instructions, the role, the layout, and all of it
    first = build_program(SMALL, INSTRUCTIONS, folder=cache)
    files = {path: path.stat().st_ino for path in cache.glob("*.*o")}
    assert build_program(SMALL, INSTRUCTIONS, folder=cache) == first
    assert {path: path.stat().st_ino for path in cache.glob("*.*o")} == files
    assert before.items() < files.items() and len(files) == 8  # another role, another layout, all of that


@pytest.mark.slow
@pytest.mark.ci
def test_every_input_counts(cache: Path) -> None:
    paths = {build_program(SMALL, INSTRUCTIONS, folder=cache)}
    paths.add(build_program(SMALL | {"P.c": SMALL["P.c"] + "/* */"}, INSTRUCTIONS, folder=cache))
    paths.add(build_program(SMALL | {"size.h": "/* */"}, INSTRUCTIONS, folder=cache))
    paths.add(build_program(SMALL, INSTRUCTIONS.splitlines()[0] + "\n", folder=cache))
    other = dataclasses.replace(find_compiler(), flags=(*find_compiler().flags, "-O0"))
    paths.add(build_program(SMALL, INSTRUCTIONS, folder=cache, compiler=other))
    assert len(paths) == 5


@pytest.mark.slow
@pytest.mark.ci
def test_processes_that_build_the_same_do_not_disturb_each_other(cache: Path) -> None:
    script = (
        "import sys, json; from pathlib import Path\n"
        "from polyloom.wafer.simulator.build import build_program\n"
        "texts, table, folder = json.load(sys.stdin)\n"
        "print(build_program(texts, table, folder=Path(folder)))"
    )
    given = json.dumps([SMALL, INSTRUCTIONS, str(cache)])
    command = [sys.executable, "-c", script]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(given)
        process.stdin.close()
    printed = [process.stdout.read() for process in running if process.stdout is not None]
    assert all(process.wait() == 0 for process in running)
    assert len(set(printed)) == 1 and Path(printed[0].strip()).exists()
    assert not [path for path in cache.iterdir() if path.name.startswith("new-")]


@pytest.mark.slow
@pytest.mark.ci
def test_code_that_does_not_compile_is_an_internal_fault(cache: Path) -> None:
    broken = SMALL | {"P.c": role_text("half a[1];", "static void main(void) { undeclared(1); }")}
    with pytest.raises(BuildFailure, match="undeclared"):
        build_program(broken, INSTRUCTIONS, folder=cache)
    assert not [path for path in cache.iterdir() if path.name.startswith("new-")]


NOT_FOR_THIS_PROCESSOR = """#!/bin/sh
case "$*" in
  *-march=native*-c\\ P.c*) echo "P.s:1: Error: unsupported masking for \\`vmovsh'" >&2; exit 1 ;;
esac
exec {} "$@"
"""


@pytest.mark.slow
@pytest.mark.ci
def test_where_code_for_this_processor_cannot_be_assembled_code_for_any_is_built(tmp_path: Path) -> None:
    script = tmp_path / "compiler"
    script.write_text(NOT_FOR_THIS_PROCESSOR.format(" ".join(find_compiler().command)))
    script.chmod(0o755)
    compiler = try_compiler((str(script),))
    assert compiler is not None
    if NATIVE not in compiler.flags:
        pytest.skip("the compiler makes code for any processor")
    assert build_program(SMALL, INSTRUCTIONS, folder=tmp_path, compiler=compiler).exists()
    broken = SMALL | {"P.c": role_text("half a[1];", "static void main(void) { undeclared(1); }")}
    with pytest.raises(BuildFailure, match="undeclared"):
        build_program(broken, INSTRUCTIONS, folder=tmp_path, compiler=compiler)


@pytest.mark.parametrize(
    "call", ["invoke_simd(faddh, (operand){0}, (half)1)", "receive(double, 0)", "load(M.a)"]
)
def test_calls_of_the_wrong_form_do_not_compile(call: str, cache: Path) -> None:
    wrong = SMALL | {"P.c": role_text("half a[1];", f"static void main(void) {{ {call}; }}")}
    with pytest.raises(BuildFailure):
        build_program(wrong, INSTRUCTIONS, folder=cache)


def test_without_a_compiler_the_message_says_what_to_do() -> None:
    with pytest.raises(PolyloomError) as caught:
        choose_compiler([("/nowhere/gcc",), ("false",)])
    diagnostic = caught.value.diagnostics[0]
    assert "ziglang" in diagnostic.helps[0] or "zig" in diagnostic.helps[0]
    assert [note.partition(": ")[0] for note in diagnostic.notes] == ["`/nowhere/gcc`", "`false`"]
    assert "cannot be started" in diagnostic.notes[0] and "exit status 1" in diagnostic.notes[1]


def test_several_simulations_in_turn_and_in_threads() -> None:
    expected = summary(chain(3, 2, 2)[0])
    two = [chain(3, 2, 2)[0], chain(3, 2, 2)[0]]
    assert [summary(simulation) for simulation in two] == [expected, expected]
    results: list[list[object]] = []
    threads = [threading.Thread(target=lambda: results.append(summary(chain(3, 2, 2)[0]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


def test_progress_is_told() -> None:
    role = role_text(
        "half a[1];",
        "static void main(void) { activate(again); }\nstatic void again(void) { activate(again); }",
        tasks="LOCAL(again)",
    )
    told: list[tuple[int, int]] = []

    class Enough(Exception):
        pass

    def progress(events: int, cycle: int) -> None:
        told.append((events, cycle))
        if len(told) == 2:
            raise Enough

    with pytest.raises(Enough):
        one_pe(role).run(progress)
    assert 0 < told[0][0] < told[1][0] and 0 < told[0][1] < told[1][1]


def test_memory_is_read_back_with_what_is_initialised() -> None:
    simulation = one_pe(role_text("half a[4]; int32_t b[2];", "static void main(void) {}"))
    assert simulation.memory_bytes([0], [0]).tolist() == [16]
    mask = np.array([[True, False]])
    simulation.load([0], [0], 8, np.array([[7, 8]], np.int32).view(np.uint8), mask, 4)
    set_memory(simulation, [0], [0], 2, np.array([[1.5]], np.float16))
    data, known = simulation.read([0], [0], 0, 16)
    assert known[0].tolist() == [False, True, False, False, True, True, False, False]
    assert data[0].view(np.int32)[2] == 7 and data[0].view(np.float16)[1] == 1.5


def test_wrong_use_of_the_wrapper() -> None:
    simulation = one_pe(SMALL["P.c"])
    bytes_, mask = np.zeros((1, 2), np.uint8), np.ones((1, 1), np.bool_)
    for wrong in (
        lambda: simulation.load([0], [0], 2, bytes_, mask, 2),
        lambda: simulation.load([1], [0], 0, bytes_, mask, 2),
        lambda: simulation.load([0, 0], [0], 0, bytes_, mask, 2),
        lambda: simulation.load([0], [0], 0, bytes_, np.ones((1, 2), np.bool_), 2),
        lambda: simulation.read([0], [0], 1, 1),
        lambda: simulation.source("north", 1, 0, np.zeros(1, np.uint32), np.zeros(1, np.bool_)),
        lambda: simulation.source("north", 0, 0, np.zeros(2, np.uint32), np.zeros(1, np.bool_)),
        lambda: simulation.received("north", 0, 0),
        lambda: fabric(SMALL, 1000, 1),
        lambda: fabric(SMALL, 0, 1),
    ):
        with pytest.raises(ValueError, match=r"PE|position|words|payload|sink|coordinates"):
            wrong()
    simulation.run()
    with pytest.raises(ValueError, match="once"):
        simulation.run()


@pytest.mark.parametrize("name", machines())
def test_every_number_of_a_machine_has_a_source_or_is_an_estimate(name: str) -> None:
    text = (files("polyloom.wafer.machine") / "machines" / f"{name}.json").read_text()
    document = json.loads(text)
    for key, entry in document.items():
        if key in ("name", "title"):
            continue
        assert set(entry) in ({"value", "source"}, {"value", "estimate"}, {"value", "fit", "fit_to"}), key
        assert len(entry.get("source", entry.get("estimate", entry.get("fit")))) > 10, key
    machine = load_machine(name)
    assert machine.name == name and set(machine.provenance) == set(document) - {"name", "title"}
    assert machine.router_buffer > machine.hop_latency


def test_machines_differ_where_they_are_known_to() -> None:
    cs3 = load_machine("cs3")
    assert (CS2.simd_width("fmach"), cs3.simd_width("fmach"), cs3.simd_width("fmacs")) == (4, 8, 1)
    assert (CS2.hop_latency, cs3.hop_latency) == (1, 2)
    assert CS2.simd_width("no such instruction") == 1 and CS2.memory_bytes == 40960
    assert CS2.provenance["configure"].startswith("estimate: ")
    with pytest.raises(PolyloomError, match="machine-unknown"):
        load_machine("cs9")


@pytest.mark.parametrize(
    "values",
    [
        {"hop_latency": 0},
        {"input_queues": (4, 0)},
        {"colors": 33},
        {"router_buffer": 250},
        {"simd_widths": {"fmach": 0}},
    ],
)
def test_machines_that_cannot_be_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="machine cs2"):
        changed(**values)


def test_the_example_program_compiles_for_every_machine() -> None:
    for name in machines():
        with fabric(files_of("convolution"), 1, 2, machine=load_machine(name)) as simulation:
            assert simulation.memory_bytes([0, 0], [0, 1]).tolist() == [46, 46]
