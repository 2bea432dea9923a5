"""`polyloom check`: what is printed, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polyloom.cli.command import run

LAYOUT = """
param n: u16;
layout {
  @set_rectangle(n, 1);
  for (@range(u16, n)) |x| @set_tile_code(x, 0, "pe.csl");
  <layout>
}
"""


def written(folder: Path, pe: str, layout: str = "") -> str:
    """Write a program and return the path of its layout."""
    (folder / "pe.csl").write_text(pe)
    (folder / "layout.csl").write_text(LAYOUT.replace("<layout>", layout))
    return str(folder / "layout.csl")


def test_a_good_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", written(tmp_path, "var a: [4]f32;"), "--params=n:2", "--arch=wse3"]) == 0
    assert capsys.readouterr().out == "no errors\n"


def test_warnings_leave_the_status_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layout = "@set_color_config(0, 0, @get_color(1), .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });"
    path = written(tmp_path, "var a: [4]f32;", layout)
    assert run(["check", path, "--params", "n:2"]) == 0
    shown = capsys.readouterr()
    assert "warning[csl-route-lost]" in shown.err
    assert shown.out == "no errors, 1 warning\n"


def test_errors_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(
        tmp_path, "task t() u16 { return 1; } comptime { @bind_local_task(t, @get_local_task_id(9)); }"
    )
    assert run(["check", path, "--params=n:1", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (only,) = found["errors"]
    assert list(found) == ["version", "errors", "warnings", "remarks"]
    assert only["code"] == "csl-task-result"
    assert only["place"].endswith("pe.csl:1:6")


def test_types_of_bodies_are_checked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
    var a: [4]f32; var n: u16;
    task t() void { a[0] = n; }
    comptime { @bind_local_task(t, @get_local_task_id(9)); }
    """
    assert run(["check", written(tmp_path, text), "--params=n:1"]) == 1
    assert "csl-type" in capsys.readouterr().err


def test_remarks_can_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "var a: [64]f32; const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> a[8 * i] });"
    path = written(tmp_path, text)
    assert run(["check", path, "--params=n:1"]) == 0
    assert "csl-simd-stride" in capsys.readouterr().err
    assert run(["check", path, "--params=n:1", "--no-remarks"]) == 0
    assert capsys.readouterr() == ("no errors\n", "")
