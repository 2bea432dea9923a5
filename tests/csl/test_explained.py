"""What `explain` and reports say of CSL programs, beside what their texts say, and what a run counts."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from csl_text import program

from polyloom.csl.compile import compile_layout
from polyloom.csl.comptime import TileProgram
from polyloom.csl.host.folder import compile_to_folder
from polyloom.csl.host.opening import Recording, recording
from polyloom.csl.host.options import Options
from polyloom.csl.host.run import Run, watched
from polyloom.csl.host.runtime import MemcpyDataType, MemcpyOrder, SdkRuntime
from polyloom.csl.overview import overview
from polyloom.csl.survey import pes_text, survey
from polyloom.diagnostics import PolyloomError
from polyloom.report.csl.explain_view import print_survey
from polyloom.report.html.csl_page import csl_page, listings, task_rows, wait_rows

PROGRAMS = Path(__file__).parent / "programs"
WORD: dict[str, Any] = {
    "streaming": False,
    "order": MemcpyOrder.ROW_MAJOR,
    "data_type": MemcpyDataType.MEMCPY_32BIT,
}

STARTS = """
const sys = @import_module("<memcpy/memcpy>", .{});
const red = @get_color(4);
const iq = @get_input_queue(2);
const local = @get_local_task_id(9);
const other = @get_local_task_id(10);
const pushed = @get_local_task_id(11);
var buffer = @zeros([8]f32);
var data = @zeros([8]f32);
const all = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> data[i] });
const fifo = @allocate_fifo(buffer, .{ .activate_push = pushed });
const received = @get_dsd(fabin_dsd, .{ .extent = 8, .input_queue = iq });
task on_data(x: f32) void { data[0] = x; @activate(other); }
task on_end() void {}
task on_local() void { @block(other); @fmovs(fifo, all, .{ .async = true, .unblock = other }); }
task on_other() void {
  @fmovs(all, received, .{ .async = true, .activate = local });
  sys.unblock_cmd_stream();
}
task on_push() void { @fmovs(all, fifo); }
comptime {
  @bind_data_task(on_data, <id>);
  @bind_control_task(on_end, @get_control_task_id(40));
  @bind_local_task(on_local, local);
  @bind_local_task(on_other, other);
  @bind_local_task(on_push, pushed);
  @activate(local);
  @initialize_queue(iq, .{ .color = red });
}
"""


@pytest.mark.parametrize(
    ("arch", "id_", "arrival"),
    [
        ("wse2", "@get_data_task_id(red)", "wavelets of color 4"),
        ("wse3", "@get_data_task_id(iq)", "wavelets of input queue 2, color 4"),
    ],
)
def test_what_starts_each_task(arch: str, id_: str, arrival: str) -> None:
    found = program(STARTS.replace("<id>", id_), arch=arch)
    tile = TileProgram(found.root.file, (), found.root.file.tree.items[0].span)
    told = overview(found, tile, [])
    assert {task.name: task.started_by for task in told.tasks} == {
        "on_data": (arrival,),
        "on_end": ("control wavelets that name it",),
        "on_local": ("at the start", "end of an operation in `on_other`"),
        "on_other": (
            "@activate in `on_data`",
            "unblocked at the end of an operation in `on_local`",
        ),
        "on_push": ("push to a FIFO",),
    }
    assert [(queue.kind, queue.id, queue.color) for queue in told.queues] == [("input", 2, 4)]


def test_pes_as_rectangles_are_the_pes() -> None:
    for seed in range(60):
        draw = random.Random(seed)
        pes = {(x, y) for x in range(5) for y in range(4) if draw.random() < 0.7}
        text = pes_text(pes)
        named: list[tuple[int, int]] = []
        for x, y in re.findall(r"\(([\d.]+), ([\d.]+)\)", text):
            ends = [[int(n) for n in span.split("..")] for span in (x, y)]
            xs, ys = (range(end[0], end[-1] + 1) for end in ends)
            named += [(column, row) for column in xs for row in ys]
        more = re.search(r"and (\d+) more$", text)
        assert set(named) <= pes and len(named) == len(set(named))
        assert len(named) + (int(more[1]) if more else 0) == len(pes)


def test_a_layout_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    found = survey(compile_layout(PROGRAMS / "pipeline" / "layout.csl", "wse2", {"width": 5}))
    assert (found.width, found.height) == (5, 1)
    assert sorted((row.count, row.pes) for row in found.programs) == [
        (1, "(0, 0)"),
        (1, "(2, 0)"),
        (1, "(4, 0)"),
        (2, "(1, 0), (3, 0)"),
    ]
    assert {task.name for row in found.programs for task in row.tasks} == {"done"}
    assert {(row.color, row.route, row.pes) for row in found.routes} == {
        (1, "ramp -> east", "(0, 0), (2, 0)"),
        (1, "west -> ramp", "(1, 0), (3, 0)"),
        (2, "ramp -> east", "(1, 0), (3, 0)"),
        (2, "west -> ramp", "(2, 0), (4, 0)"),
    }
    assert {row.switches for row in found.routes} == {
        "",
        "position 1: ramp -> east; begins at 0, in a ring; pops always",
    }
    assert all(("sums", "f32", 32) in row.memory and row.bytes >= 34 for row in found.programs)
    assert found.exports == (("sums", "[*]f32"), ("start", "fn(u16) void"))
    assert json.loads(json.dumps(found.json()))["programs"][0]["tasks"][0]["id"] == 9
    print_survey(found, 49_152)
    printed = capsys.readouterr().out
    assert "done, local 9: end of an operation in `start`" in printed and "pops always" in printed


def page_data(page: str) -> Any:
    """Return what the scripts of a page draw."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def runs_of(width: int, folder: Path, *, launched: bool) -> Run:
    """Return the run of a pipeline. If its first PE is not launched, what the others wait for never comes."""
    runs: list[Run] = []
    with recording(Recording(report=runs.append)):
        compile_to_folder(
            Options(PROGRAMS / "pipeline" / "layout.csl", folder / "out", "wse2", {"width": width})
        )
        runner = SdkRuntime(folder / "out")
        runner.load()
        runner.run()
        session = runner._session
        assert session is not None
        for x in range(0 if launched else 1, width):
            session.machine.call(x, 0, "start", [3])
        sums = np.zeros(width * 8, np.float32)
        with contextlib.nullcontext() if launched else pytest.raises(PolyloomError):
            runner.memcpy_d2h(sums, runner.get_id("sums"), 0, 0, width, 1, 8, nonblock=False, **WORD)
            runner.stop()
    (run,) = runs
    return run


@pytest.mark.slow
@pytest.mark.ci
def test_the_page_of_a_run_says_what_was_counted(tmp_path: Path) -> None:
    run = runs_of(4, tmp_path, launched=True)
    page = csl_page(run, "ours")
    data = page_data(page)
    assert data["cycles"] == run.counts.cycles > 0
    assert data["roles"] == [unit.overview.file for unit in run.program.units]
    timelines = json.loads(zlib.decompress(base64.b64decode(data["timelines"]["data"])))
    assert [pe["x"] for pe in timelines["pes"]] == [0, 1, 2, 3]
    rows = list(task_rows(run))
    assert sum(row.times for row in rows if row.task == "start") == 4
    assert sum(row.cycles - row.waited for row in rows) == sum(
        int(event["duration"])
        for event in run.trace.events
        if event["kind"] == 0  # type: ignore[union-attr]
    ) - sum(cycles for _, _, cycles in wait_rows(run))
    routes = {(route["color"], route["source"], tuple(route["targets"])) for route in data["routes"]}
    assert {(1, "ramp", ("east",)), (2, "west", ("ramp",))} <= routes
    assert 'class="verdict none"' in page and "done, local 9" in re.sub("<[^>]*>", "", page)


@pytest.mark.slow
@pytest.mark.ci
def test_the_cycles_of_all_lines_are_those_of_the_run(tmp_path: Path) -> None:
    run = runs_of(5, tmp_path, launched=True)
    found = list(listings(run))
    assert sum(each["cycles"] for each in found) == run.counts.busy.sum()
    root = found[0]
    assert root["text"] == run.program.sources[root["name"]]
    assert (root["pes"], root["name"].endswith("pe.csl")) == (len(run.program.tiles), True)
    lines = root["text"].splitlines()
    worked = {lines[n - 1].strip(): root["uses"][5 * k + 2] for k, n in enumerate(root["uses"][::5])}
    assert all(not text.startswith(("//", "const ", "}")) for text, cycles in worked.items() if cycles), (
        worked
    )


def test_a_run_that_cannot_end_has_a_page_too(tmp_path: Path) -> None:
    run = runs_of(3, tmp_path, launched=False)
    assert run.fault is not None
    assert run.fault.kind == "deadlock"
    page = csl_page(run, "ours")
    assert 'class="verdict failed"' in page and run.fault.message.split(":")[0] in page


def test_of_large_rectangles_some_pes_are_recorded() -> None:
    small = compile_layout(PROGRAMS / "pipeline" / "layout.csl", "wse2", {"width": 64})
    large = compile_layout(PROGRAMS / "pipeline" / "layout.csl", "wse2", {"width": 65})
    assert watched(small) is None
    chosen = watched(large)
    assert chosen is not None and {(0, 0), (64, 0), (32, 0)} <= set(chosen) and len(chosen) < 12
