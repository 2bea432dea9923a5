"""Programs of ours through the host's names, from the layout to arrays: both architectures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyloom.csl.host.debug import debug_util
from polyloom.csl.host.folder import compile_to_folder
from polyloom.csl.host.opening import Recording, SimulatedWafer, recording
from polyloom.csl.host.options import Options
from polyloom.csl.host.runtime import MemcpyDataType, MemcpyOrder, SdkRuntime
from polyloom.csl.host.utils import calculate_cycles, input_array_to_u32, memcpy_view
from polyloom.diagnostics import PolyloomError
from samples import one_in

PROGRAMS = Path(__file__).parent / "programs"
ARCHES = ("wse2", "wse3")
WORD: dict[str, Any] = {
    "streaming": False,
    "order": MemcpyOrder.ROW_MAJOR,
    "data_type": MemcpyDataType.MEMCPY_32BIT,
}
HALF: dict[str, Any] = {**WORD, "data_type": MemcpyDataType.MEMCPY_16BIT}


def open_program(name: str, arch: str, folder: Path, **params: int) -> SdkRuntime:
    """Compile a program of ours and start it."""
    compile_to_folder(Options(PROGRAMS / name / "layout.csl", folder / "out", arch, params))
    runner = SdkRuntime(folder / "out")
    runner.load()
    runner.run()
    return runner


WIDTH, HEIGHT, N = 4, 3, 5


def put(runner: SdkRuntime, name: str, data: np.ndarray[Any, Any]) -> None:
    height, width, elements = data.shape
    runner.memcpy_h2d(
        runner.get_id(name), data.ravel(), 0, 0, width, height, elements, nonblock=False, **WORD
    )


def get(runner: SdkRuntime, name: str, elements: int, dtype: Any) -> np.ndarray[Any, Any]:
    data = np.zeros(HEIGHT * WIDTH * elements, dtype)
    runner.memcpy_d2h(data, runner.get_id(name), 0, 0, WIDTH, HEIGHT, elements, nonblock=False, **WORD)
    return data.reshape(HEIGHT, WIDTH, elements)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("arch", one_in(2, ARCHES))
def test_collectives(arch: str, tmp_path: Path) -> None:
    runner = open_program("collectives", arch, tmp_path, width=WIDTH, height=HEIGHT, n=N)
    random = np.random.default_rng(3)
    words = random.integers(0, 2**32, (HEIGHT, WIDTH, N), np.uint32)
    chunks = random.integers(0, 2**32, (HEIGHT, WIDTH, 8 * N), np.uint32)
    numbers = random.integers(-9, 9, (HEIGHT, WIDTH, N)).astype(np.float32)
    for along, size in ((0, WIDTH), (1, HEIGHT)):
        for root in range(size):
            at = (slice(None), [root]) if along == 0 else ([root], slice(None))

            def run(what: int, along: int = along, root: int = root) -> None:
                runner.launch("run", np.uint16(along), np.uint16(what), np.uint16(root), nonblock=False)

            put(runner, "words", words)
            run(0)
            assert np.array_equal(get(runner, "words", N, np.uint32), np.broadcast_to(words[at], words.shape))
            put(runner, "chunks", chunks)
            run(1)
            sent = chunks[at][..., : size * N]
            split = sent.reshape(*sent.shape[:2], size, N)
            expected = split[:, 0] if along == 0 else split[0].swapaxes(0, 1)
            assert np.array_equal(get(runner, "words", N, np.uint32), expected)
            run(2)
            assert np.array_equal(get(runner, "chunks", 8 * N, np.uint32)[at][..., : size * N], sent)
            put(runner, "numbers", numbers)
            run(3)
            sums = numbers.sum(axis=1 - along, keepdims=True)
            assert np.array_equal(get(runner, "sums", N, np.float32)[at], sums)
    runner.stop()


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("arch", one_in(2, ARCHES, start=1))
def test_collectives_one_after_another(arch: str, tmp_path: Path) -> None:
    runner = open_program("collectives", arch, tmp_path, width=WIDTH, height=HEIGHT, n=1)
    numbers = np.arange(WIDTH * HEIGHT, dtype=np.float32).reshape(HEIGHT, WIDTH, 1)
    put(runner, "numbers", numbers)
    runner.launch("storm", nonblock=False)
    sums = np.broadcast_to(numbers.sum(axis=1, keepdims=True), numbers.shape)
    assert np.array_equal(get(runner, "sums", 1, np.float32), sums)
    runner.stop()


@pytest.mark.parametrize("arch", ARCHES)
def test_streams(arch: str, tmp_path: Path) -> None:
    runner = open_program("streams", arch, tmp_path, IN=4, OUT=5, IN_16=6, OUT_16=7, n=3)
    sent = np.arange(12, dtype=np.uint32)
    back = np.zeros(12, np.uint32)
    column: dict[str, Any] = {**WORD, "streaming": True, "order": MemcpyOrder.COL_MAJOR}
    runner.memcpy_h2d(4, sent, 0, 0, 2, 2, 3, nonblock=True, **column)
    runner.memcpy_d2h(back, 5, 0, 0, 2, 2, 3, nonblock=False, **column)
    y, x = np.meshgrid([0, 1], [0, 1])
    assert np.array_equal(
        back.reshape(3, 2, 2), sent.reshape(3, 2, 2) + (100 * x + 1000 * y).astype(np.uint32)
    )

    small = np.array([1, -2, 3], np.int16)
    answer = np.zeros(3, np.uint32)
    half = {**HALF, "streaming": True}
    runner.memcpy_h2d(6, input_array_to_u32(small, 1, 3), 1, 0, 1, 1, 3, nonblock=True, **half)
    task = runner.memcpy_d2h(answer, 7, 1, 0, 1, 1, 3, nonblock=True, **half)
    runner.task_wait(task)
    assert np.array_equal(memcpy_view(answer, np.int16), small + 10)
    for place in ((0, 0), (0, 1), (1, 1)):
        runner.memcpy_h2d(6, input_array_to_u32(small, 1, 3), *place, 1, 1, 3, nonblock=True, **half)
        runner.memcpy_d2h(answer, 7, *place, 1, 1, 3, nonblock=True, **half)
    runner.stop()


@pytest.mark.parametrize("arch", ARCHES)
def test_libraries(arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = open_program("libraries", arch, tmp_path)
    x = np.array([0, 1, 4, 2], np.float32)
    halves = np.array([1, -2, 0.5, -0.25], np.float16)
    runner.memcpy_h2d_rowbcast(runner.get_id("x"), x, 0, 0, 2, 1, 4, nonblock=True, **WORD)
    runner.memcpy_h2d(
        runner.get_id("halves"), input_array_to_u32(halves, None, 1), 1, 0, 1, 1, 4, nonblock=True, **HALF
    )
    runner.launch("compute", 2.0, np.int16(-1), nonblock=False)
    roots, back, stamps = np.zeros(8, np.float32), np.zeros(4, np.uint32), np.zeros(6, np.uint32)
    uniform, taken = np.zeros(16, np.float32), np.zeros(2, np.uint32)
    runner.memcpy_d2h(roots, runner.get_id("roots"), 0, 0, 2, 1, 4, nonblock=False, **WORD)
    runner.memcpy_d2h(back, runner.get_id("halves"), 1, 0, 1, 1, 4, nonblock=False, **HALF)
    runner.memcpy_d2h(stamps, runner.get_id("stamps"), 0, 0, 1, 1, 6, nonblock=False, **HALF)
    runner.memcpy_d2h(uniform, runner.get_id("uniform"), 0, 0, 2, 1, 8, nonblock=False, **WORD)
    runner.memcpy_d2h(taken, runner.get_id("taken"), 0, 0, 1, 1, 2, nonblock=False, **WORD)
    runner.stop()
    assert np.array_equal(roots.reshape(2, 4), np.tile(2 * np.sqrt(x) - 1, (2, 1)))
    assert np.array_equal(memcpy_view(back, np.float16), 2 * np.abs(halves))
    assert 10 < calculate_cycles(stamps.astype(np.uint16).view(np.float32)) < 10_000
    assert len(set(uniform.tolist())) == 16 and (np.abs(uniform) <= 1).all() and uniform.std() > 0.2
    assert taken.tolist() == [16, 8]
    seen = debug_util(tmp_path / "out")
    trace = seen.read_trace(1, 0, "trace")
    assert trace[:3] == ["began", -1, 2.0] and trace[3] > 0
    assert np.array_equal(seen.get_symbol(0, 0, "x", np.float32), x)
    lines = (tmp_path / "sim.log").read_text().splitlines()
    assert sorted(line.partition(" ")[2] for line in lines) == ["at 0", "at 1"]


@pytest.mark.slow
@pytest.mark.ci
def test_runs_are_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    timeline, lines = tmp_path / "t.json", tmp_path / "t.log"
    with recording(Recording(timeline, lines, summary=True)):
        runner = open_program("collectives", "wse2", tmp_path, width=WIDTH, height=HEIGHT, n=1)
        runner.launch("run", np.uint16(0), np.uint16(0), np.uint16(0), nonblock=False)
        runner.stop()
    events = json.loads(timeline.read_text())["traceEvents"]
    assert {"step_task"} <= {e["name"] for e in events if e.get("cat") == "task"}
    text = lines.read_text().splitlines()
    assert text[0] == f"@0 dimX={WIDTH}, dimY={HEIGHT}"
    cycles = [int(line[1 : line.index(" ")]) for line in text]
    assert cycles == sorted(cycles)
    landings = [line for line in text if ") landing C" in line and "from link W," in line]
    assert sorted({line.split()[1] for line in landings}) == [
        f"P{x}.{y}" for x in (1, 2, 3) for y in range(3)
    ]
    summary = capsys.readouterr().err
    assert summary.startswith("cycles ") and "9 hops" in summary and "PEs     4 x 3" in summary


def test_what_nothing_wrote_is_no_likely_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = compile_to_folder(Options(PROGRAMS / "libraries" / "layout.csl", tmp_path / "out")).program
    unit = program.units[0]
    wafer = SimulatedWafer(replace(program, units=(replace(unit, initialised=bytes(len(unit.initialised))),)))
    address = unit.variables["x"].address
    assert wafer.read(0, 0, address, 8) == b"\xa5" * 8
    wafer.write(0, 0, address, b"\1\2")
    assert wafer.read(0, 0, address, 4) == b"\1\2\xa5\xa5"
    wafer.finish()
    err = capsys.readouterr().err
    assert err.startswith("warning[csl-host-unwritten]: the host read 5 16-bit words of PE (0, 0)")


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda r: r.launch("compute", 1.0), "csl-host-arguments"),
        (lambda r: r.launch("compute", np.float16(1), 2), "csl-host-arguments"),
        (lambda r: r.launch("compute", 1.0, 70_000), "csl-host-arguments"),
        (lambda r: r.launch("computed", 1.0, 2), "csl-host-name"),
        (lambda r: r.get_id("y"), "csl-host-name"),
        (lambda r: r.memcpy_h2d(1, np.zeros(4, np.float32), 0, 0, 1, 1, 4, **WORD), "csl-host-mutable"),
        (lambda r: r.memcpy_d2h(np.zeros(4, np.float16), 0, 0, 0, 1, 1, 4, **WORD), "csl-host-array"),
        (lambda r: r.memcpy_d2h(np.zeros(8, np.float32)[::2], 0, 0, 0, 1, 1, 4, **WORD), "csl-host-array"),
        (lambda r: r.memcpy_d2h(np.zeros(4, np.float32), 99, 0, 0, 1, 1, 4, **WORD), "csl-host-name"),
        (lambda r: r.memcpy_d2h(np.zeros(4, np.float32), 0, 2, 0, 1, 1, 4, **WORD), "csl-host-region"),
        (lambda r: r.read_symbol(0, 0, "nothing"), "csl-host-name"),
        (lambda r: debug_util("/nowhere"), "csl-host-order"),
        (lambda r: SdkRuntime("/nowhere"), "csl-host-folder"),
        (lambda r: SdkRuntime("/nowhere", cmaddr="1.2.3.4:9000"), "csl-host-machine"),
        (lambda r: SdkRuntime(r._folder).run(), "csl-host-order"),
    ],
)
def test_what_does_not_fit_is_a_diagnostic(ask: Any, code: str, tmp_path: Path) -> None:
    runner = open_program("libraries", "wse2", tmp_path)
    with pytest.raises(PolyloomError) as fault:
        ask(runner)
    assert [d.code for d in fault.value.diagnostics] == [code]
