"""What a module declares `extern` is what another module of the program exports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from csl_runs import HEAD, results
from csl_text import program

from polyloom.diagnostics import PolyloomError

HELPER = """
param n: u16;
extern var table: [n]i16;
extern var count: i16 linkname("calls");
extern fn twice(x: i16) i16;
fn change() void { for (@range(u16, n)) |i| { table[i] = twice(table[i]); } count += 1; }
"""
TEXT = """
param memcpy_params = {};
const helper = @import_module("helper.csl", .{ .n = 3 });
export var table = [3]i16{ 5, 6, 7 };
export var used: i16 linkname("calls") = 40;
var out: [4]i16;
var p: [*]i16 = &out;
export fn twice(x: i16) i16 { return 2 * x; }
fn main() void {
  helper.change();
  helper.change();
  for (@range(u16, 3)) |i| { out[i] = table[i]; }
  out[3] = used;
  sys.unblock_cmd_stream();
}
comptime { @export_symbol(p, "out"); @export_symbol(main); }
"""


def test_modules_share_what_one_of_them_exports(tmp_path: Path) -> None:
    (tmp_path / "helper.csl").write_text(HELPER)
    assert results(HEAD + TEXT, np.int16, 4, folder=tmp_path) == [20, 24, 28, 42]


@pytest.mark.parametrize(
    ("declared", "others"),
    [
        ("extern var table: i16;", ""),
        ("extern var table: [4]i16;", "export var table: [3]i16;"),
        ("extern var table: i16;", "var table: i16;"),
        ("extern var table: i16;", "export fn table() void {}"),
    ],
)
def test_what_nobody_exports_so_is_refused(declared: str, others: str, tmp_path: Path) -> None:
    (tmp_path / "helper.csl").write_text(f"{declared} const address = &table;")
    text = f'{others} const helper = @import_module("helper.csl"); const x = helper.address;'
    with pytest.raises(PolyloomError) as caught:
        program(text, folder=tmp_path).root.required("x", None)  # type: ignore[arg-type]
    assert [found.code for found in caught.value.diagnostics] == ["csl-extern"]


def test_two_exporters_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one.csl").write_text("export var table: i16 = 1;")
    (tmp_path / "helper.csl").write_text("extern var table: i16; const address = &table;")
    text = """
    const a = @import_module("one.csl");
    const b = @import_module("one.csl");
    const first = a.table + b.table;
    const helper = @import_module("helper.csl");
    const x = helper.address;
    """
    with pytest.raises(PolyloomError, match="several modules export"):
        program(text, folder=tmp_path).root.required("x", None)  # type: ignore[arg-type]
