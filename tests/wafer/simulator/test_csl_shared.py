"""Units that differ only in numbers are compiled once, and each program keeps its own numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyloom.csl.compile import compile_layout
from polyloom.csl.compiled import Compiled
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.simulator.csl_fabric import CslFabric
from polyloom.wafer.simulator.csl_shared import share_units

WIDTH = 5
LAYOUT = """
layout {
  @set_rectangle(5, 1);
  for (@range(u16, 5)) |x|
    @set_tile_code(x, 0, "pe.csl", .{ .x = x, .n = 3 + 4 * (x % 2), .scale = @as(f32, x) * 0.5 - 1.0 });
}
"""
PE = """
param x: i16; param n: u16; param scale: f32;
var low: [2]u16;
var before = @zeros([n]u16);
var result: [4]f32;
const scaled = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> result[i] });
const id = @get_local_task_id(9);
task go() void {
  before[0] = 1;
  for (@range(u16, 4)) |i| { result[i] = if (i < n) @as(f32, 100 * x - 7) else 1.0; }
  switch (x) { 3 => { result[0] = 8.0; }, else => {} }
  @fmuls(scaled, scaled, scale);
}
comptime { @bind_local_task(go, id); @activate(id); }
"""


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("csl")
    return {unit.name: unit.text for unit in layout_in(folder).units}


def layout_in(folder: Path) -> Compiled:
    (folder / "layout.csl").write_text(LAYOUT)
    (folder / "pe.csl").write_text(PE)
    return compile_layout(folder / "layout.csl", "wse2")


def test_one_file_for_programs_that_differ_in_numbers(units: dict[str, str]) -> None:
    """PE 3 takes another branch, which is known when its program is made: it has a file of its own."""
    files = share_units(units)
    assert sorted(files) == ["unit_0", "unit_3"]
    assert files["unit_0"].count("static void task_go") == 1
    assert files["unit_0"].count("CSL_PROGRAM(") == WIDTH - 1
    assert "#define at_result" in files["unit_0"]


def test_a_message_or_a_cost_that_differs_keeps_programs_apart(units: dict[str, str]) -> None:
    cost = units["unit_0"].replace(".stores = 1", ".stores = 2")
    text = units["unit_0"].replace('"before[0] = 1', '"before[1] = 1')
    assert cost != units["unit_0"] != text
    for other in (cost, text):
        assert len(share_units({"unit_0": units["unit_0"], "unit_1": other})) == 2


def test_each_program_has_its_numbers(tmp_path: Path) -> None:
    compiled = layout_in(tmp_path)
    fabric = CslFabric({u.name: u.text for u in compiled.units}, load_machine("cs2"), WIDTH, 1)
    for (x, y), number in compiled.tiles.items():
        unit = compiled.units[number]
        fabric.place(x, y, unit.name, unit.image, unit.initialised)
    fabric.run([])
    for x in range(WIDTH):
        symbol = compiled.variable(x, 0, "result")
        assert symbol is not None
        found = np.frombuffer(fabric.read(x, 0, symbol.address, 16), np.float32)
        values = [100 * x - 7 if i < 3 + 4 * (x % 2) else 1 for i in range(4)]
        expected = np.array([8, *values[1:]] if x == 3 else values) * (0.5 * x - 1)
        assert found.tolist() == expected.tolist()
