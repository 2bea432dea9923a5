"""Rules of `polyloom check`: each breaks in a program of ours, and keeps quiet about one that obeys it."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyloom.csl.compile import faults
from polyloom.csl.lint import RULES, check
from polyloom.diagnostics import Diagnostic

PE = """
param memcpy_params;
const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
const red = @get_color(1);
const iq = @get_input_queue(2);
const oq = @get_output_queue(3);
var a = @zeros([16]f32);
var b = @zeros([16]f32);
var h = @zeros([16]f16);
const p: [*]f32 = &a;
const da = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{16} -> a[i] });
const db = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{16} -> b[i] });
const sent = @get_dsd(fabout_dsd, if (@is_arch("wse3")) .{ .extent = 16, .output_queue = oq }
  else .{ .extent = 16, .fabric_color = red, .output_queue = oq });
const received = @get_dsd(fabin_dsd, .{ .extent = 16, .input_queue = iq });
const id = @get_local_task_id(9);
task done() void { sys_mod.unblock_cmd_stream(); }
fn run() void {
  <body>
  @fmovs(da, received, .{ .async = true, .activate = done });
}
<top>
comptime {
  @bind_local_task(done, id);
  @initialize_queue(iq, .{ .color = red });
  @initialize_queue(oq, if (@is_arch("wse3")) .{ .color = red } else .{});
  @export_symbol(p, "a");
  @export_symbol(run);
  <comptime>
}
"""

LAYOUT = """
const red = @get_color(1);
const blue = @get_color(10);
const memcpy = @import_module("<memcpy/get_params>", .{ .width = 2, .height = 1 });
layout {
  @set_rectangle(2, 1);
  for (@range(u16, 2)) |x| @set_tile_code(x, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(x) });
  @set_color_config(0, 0, red, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
  @set_color_config(1, 0, red, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
  @export_name("a", [*]f32, true);
  @export_name("run", fn()void);
  <layout>
}
"""


def found(folder: Path, arch: str = "wse2", *, pe: str = PE, **holes: str) -> list[Diagnostic]:
    """Return what is said of the program whose holes are filled."""
    for name, text in (("pe.csl", pe), ("layout.csl", LAYOUT)):
        for hole in ("body", "top", "comptime", "layout"):
            text = text.replace(f"<{hole}>", holes.get(hole, ""))
        (folder / name).write_text(text)
    return check(folder / "layout.csl", arch)


@pytest.mark.parametrize("arch", ["wse2", "wse3"])
def test_nothing_is_said_of_a_good_program(arch: str, tmp_path: Path) -> None:
    assert found(tmp_path, arch) == []


SWITCH = (
    "@set_color_config({x}, 0, blue, .{{ .routes = .{{ .rx = .{{ RAMP }}, .tx = .{{ {t} }} }}, {more} }});"
)


def switched(more: str) -> str:
    """Return color 10 from PE 0 to PE 1, with switches at PE 0."""
    east = SWITCH.format(x=0, t="EAST", more=more)
    return east + "@set_color_config(1, 0, blue, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });"


def config(x: int, rx: str, tx: str, color: str = "blue") -> str:
    """Return the routes of a color of a PE."""
    return (
        f"@set_color_config({x}, 0, {color}, .{{ .routes = .{{ .rx = .{{ {rx} }}, .tx = .{{ {tx} }} }} }});"
    )


def local(rx: str, tx: str) -> str:
    """Return the routes of color 1 in a PE's own program."""
    return f"@set_local_color_config(red, .{{ .routes = .{{ .rx = .{{ {rx} }}, .tx = .{{ {tx} }} }} }});"


BROKEN: list[tuple[str, str, str, dict[str, str]]] = [
    ("csl-color-twice", "wse2", "error", {"comptime": local("WEST", "RAMP")}),
    ("csl-memcpy-color", "wse2", "warning", {"layout": config(0, "RAMP", "RAMP", "@get_color(21)")}),
    ("csl-merge", "wse2", "remark", {"layout": config(0, "EAST, RAMP", "RAMP")}),
    ("csl-route-leaves", "wse2", "remark", {"layout": config(0, "RAMP", "WEST")}),
    ("csl-route-leaves", "wse2", "warning", {"layout": config(1, "WEST", "EAST")}),
    ("csl-route-lost", "wse2", "warning", {"layout": config(0, "RAMP", "EAST")}),
    ("csl-route-cycle", "wse2", "warning", {"layout": config(0, "EAST", "EAST") + config(1, "WEST", "WEST")}),
    (
        "csl-switch-both",
        "wse2",
        "error",
        {"layout": switched(".switches = .{ .pos1 = .{ .rx = WEST, .tx = RAMP } }")},
    ),
    (
        "csl-switch-inputs",
        "wse2",
        "error",
        {"layout": switched(".switches = .{ .pos1 = .{ .rx = .{ WEST, EAST } } }")},
    ),
    ("csl-switch-color", "wse3", "warning", {"layout": switched(".switches = .{ .pos1 = .{ .tx = RAMP } }")}),
    (
        "csl-filter-counter",
        "wse2",
        "remark",
        {
            "layout": switched(
                ".filter = .{ .kind = .{ .counter = true }, .count_data = true, .max_counter = 3 }"
            )
        },
    ),
    ("csl-bind", "wse2", "error", {"comptime": "@bind_local_task(run, @get_local_task_id(10));"}),
    ("csl-call", "wse2", "error", {"comptime": "@bind_local_task(done);"}),
    ("csl-bind", "wse2", "error", {"comptime": "@initialize_queue(red, .{});"}),
    ("csl-bind", "wse2", "error", {"comptime": "@activate(iq);"}),
    ("csl-bind", "wse2", "error", {"comptime": "@set_local_color_config(id, .{});"}),
    ("csl-bind", "wse2", "error", {"comptime": "@bind_local_task(done, @get_control_task_id(40));"}),
    ("csl-bound-twice", "wse2", "error", {"comptime": "@bind_local_task(done, id);"}),
    ("csl-reserved-id", "wse2", "warning", {"comptime": "@bind_local_task(done, @get_local_task_id(30));"}),
    ("csl-reserved-id", "wse2", "warning", {"comptime": "@bind_local_task(done, @get_local_task_id(28));"}),
    (
        "csl-task-result",
        "wse2",
        "error",
        {"top": "task t() u16 { return 1; }", "comptime": "@bind_local_task(t, @get_local_task_id(10));"},
    ),
    (
        "csl-task-parameters",
        "wse2",
        "error",
        {"top": "task t(a: u16) void {}", "comptime": "@bind_local_task(t, @get_local_task_id(10));"},
    ),
    (
        "csl-task-parameters",
        "wse2",
        "error",
        {"top": "task t() void {}", "comptime": "@bind_data_task(t, @get_data_task_id(red));"},
    ),
    (
        "csl-task-parameters",
        "wse2",
        "error",
        {"top": "task t(a: u8) void {}", "comptime": "@bind_data_task(t, @get_data_task_id(red));"},
    ),
    (
        "csl-task-parameters",
        "wse2",
        "error",
        {"top": "task t(a: u32, b: u16) void {}", "comptime": "@bind_data_task(t, @get_data_task_id(red));"},
    ),
    ("csl-queue-twice", "wse2", "error", {"comptime": "@initialize_queue(iq, .{ .color = red });"}),
    ("csl-queue-color", "wse3", "error", {"comptime": "@initialize_queue(@get_input_queue(4), .{});"}),
    (
        "csl-queue-color",
        "wse2",
        "error",
        {"comptime": "@initialize_queue(@get_output_queue(4), .{ .color = red });"},
    ),
    (
        "csl-queue-missing",
        "wse2",
        "warning",
        {
            "top": "const other = @get_dsd(fabin_dsd, .{ .extent = 4, .input_queue = @get_input_queue(5) });",
            "body": "@fmovs(da, other);",
        },
    ),
    (
        "csl-queue-missing",
        "wse3",
        "warning",
        {
            "top": "task t(a: u32) void {}",
            "comptime": "@bind_data_task(t, @get_data_task_id(@get_input_queue(6)));",
        },
    ),
    (
        "csl-queue-other",
        "wse3",
        "warning",
        {
            "top": "const o = @get_dsd(fabout_dsd, "
            ".{ .extent = 4, .output_queue = oq, .fabric_color = @get_color(5) });",
            "body": "@fmovs(o, da);",
        },
    ),
    (
        "csl-memcpy-queue",
        "wse3",
        "warning",
        {"comptime": "@initialize_queue(@get_input_queue(1), .{ .color = red });"},
    ),
    ("csl-export-missing", "wse2", "warning", {"layout": '@export_name("z", [*]f32, true);'}),
    (
        "csl-export-type",
        "wse2",
        "error",
        {"layout": '@export_name("z", [*]u32, true);', "comptime": '@export_symbol(p, "z");'},
    ),
    (
        "csl-export-parameters",
        "wse2",
        "error",
        {
            "top": f"fn many({', '.join(f'a{i}: u16' for i in range(16))}) void {{}}",
            "comptime": "@export_symbol(many);",
            "layout": f'@export_name("many", fn({", ".join(["u16"] * 16)})void);',
        },
    ),
    (
        "csl-export-array",
        "wse2",
        "warning",
        {"comptime": '@export_symbol(b, "b");', "layout": '@export_name("b", [*]f32, true);'},
    ),
    ("csl-destination", "wse2", "error", {"body": "@fmovs(received, da);"}),
    ("csl-source", "wse2", "error", {"body": "@fmovs(da, sent);"}),
    ("csl-two-fabin", "wse3", "error", {"body": "@fadds(da, received, received);"}),
    ("csl-async-memory", "wse2", "error", {"body": "@fmovs(da, db, .{ .async = true });"}),
    (
        "csl-async-two",
        "wse2",
        "error",
        {"body": "@fmovs(da, received, .{ .async = true, .activate = id, .unblock = id });"},
    ),
    ("csl-async-missing", "wse2", "error", {"body": "@fmovs(da, received, .{ .activate = id });"}),
    ("csl-fmac-scalar", "wse2", "error", {"body": "@fmacs(da, da, db, db);"}),
    ("csl-suffix", "wse2", "error", {"body": "@fmovh(da, 1.0);"}),
    ("csl-suffix", "wse2", "error", {"body": "@faddh(da, da, db);"}),
    (
        "csl-suffix",
        "wse3",
        "error",
        {
            "top": "var w: [4]u32; const dw = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> w[i] });",
            "body": "@fadds(dw, dw, da);",
        },
    ),
    (
        "csl-call-array",
        "wse2",
        "error",
        {"top": "fn third(x: [16]f32) f32 { return x[2]; }", "body": "b[0] = third(a);"},
    ),
    ("csl-index", "wse2", "warning", {"body": "@fmovs(da, db, .{ .index = 3 });"}),
    (
        "csl-index",
        "wse2",
        "warning",
        {
            "top": "const moved = @get_dsd(mem1d_dsd, "
            ".{ .tensor_access = |i|{4} -> a[i], .wavelet_index_offset = true });",
            "body": "@fmovs(moved, moved);",
        },
    ),
    (
        "csl-extents",
        "wse2",
        "warning",
        {
            "top": "const half = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> b[i] });",
            "body": "@fmovs(da, half);",
        },
    ),
    (
        "csl-load-mem4d",
        "wse2",
        "error",
        {
            "top": "const square = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{4, 4} -> a[4 * j + i] });"
            "const dsr = @get_dsr(dsr_src0, 3);",
            "body": "@load_to_dsr(dsr, square);",
        },
    ),
    (
        "csl-map-fifo",
        "wse2",
        "error",
        {
            "top": "var buffer = @zeros([8]f32); const fifo = @allocate_fifo(buffer);"
            "fn f(v: f32) f32 { return v; }",
            "body": "@map(f, fifo, da);",
        },
    ),
    ("csl-loop-32", "wse2", "remark", {"body": "for (@range(u32, 9)) |i| { b[0] += 1.0; }"}),
    (
        "csl-dsd-range",
        "wse2",
        "warning",
        {
            "top": "const far = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{16} -> a[i + 1] });",
            "body": "@fmovs(db, far);",
        },
    ),
    (
        "csl-dsd-element",
        "wse2",
        "error",
        {"top": "var w: [4]u64; const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> w[i] });"},
    ),
    (
        "csl-fifo-var",
        "wse2",
        "error",
        {"top": "var buffer = @zeros([8]f32); var fifo = @allocate_fifo(buffer);"},
    ),
    (
        "csl-fifo-buffer",
        "wse2",
        "error",
        {"top": "const buffer = @zeros([8]f32); const fifo = @allocate_fifo(buffer);"},
    ),
    ("csl-memcpy-dsr", "wse2", "warning", {"top": "const r = @get_dsr(dsr_dest, 0);"}),
    ("csl-memory", "wse2", "error", {"top": "var large = @zeros([13000]f32);", "body": "large[0] = 1.0;"}),
    (
        "csl-simd-stride",
        "wse2",
        "remark",
        {
            "top": "var wide = @zeros([64]f32);"
            "const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> wide[8 * i] });"
        },
    ),
    (
        "csl-simd-extent",
        "wse2",
        "remark",
        {"top": "const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{13} -> h[i] });"},
    ),
    (
        "csl-bank",
        "wse2",
        "remark",
        {
            "top": "const even = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> b[i] });"
            "const later = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> b[i + 6] });",
            "body": "@fadds(even, even, later);",
        },
    ),
    (
        "csl-held-up",
        "wse2",
        "warning",
        {
            "top": "task first() void { wait(); } fn wait() void { @fmovs(da, received); }",
            "comptime": "@bind_local_task(first, @get_local_task_id(10)); @activate(first);",
        },
    ),
    (
        "csl-map-register",
        "wse2",
        "error",
        {
            "top": "fn f(v: f32) f32 { return v; } const out = @get_dsr(dsr_src0, 3);",
            "body": "@map(f, da, out);",
        },
    ),
    (
        "csl-map-register",
        "wse2",
        "error",
        {
            "top": "fn f(v: f32) void {} const from = @get_dsr(dsr_dest, 3);",
            "body": "@map(f, from);",
        },
    ),
    (
        "csl-map-step",
        "wse2",
        "warning",
        {
            "top": "fn f(v: f32) void {} const from = @get_dsr(dsr_src1, 3);",
            "body": "@load_to_dsr(from, da); @map(f, from);",
        },
    ),
    (
        "csl-simd-mode",
        "wse2",
        "remark",
        {
            "top": "const dh = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{16} -> h[i] });",
            "body": "@fmovh(dh, received, .{ .async = true, .activate = done });",
        },
    ),
]

FAR = "const far = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{15} -> a[i + 1] });"

OBEYS: list[tuple[str, str, dict[str, str]]] = [
    ("csl-color-twice", "wse2", {"comptime": local("WEST", "RAMP").replace("red", "@get_color(9)")}),
    ("csl-memcpy-color", "wse2", {"layout": config(0, "RAMP", "RAMP", "@get_color(20)")}),
    ("csl-merge", "wse2", {"layout": config(0, "EAST", "RAMP")}),
    ("csl-route-leaves", "wse2", {"layout": config(0, "RAMP", "EAST") + config(1, "WEST", "RAMP")}),
    ("csl-route-lost", "wse2", {"layout": config(0, "RAMP", "EAST") + config(1, "WEST", "RAMP")}),
    ("csl-route-cycle", "wse2", {"layout": config(0, "EAST", "RAMP") + config(1, "RAMP", "WEST")}),
    ("csl-switch-both", "wse2", {"layout": switched(".switches = .{ .pos1 = .{ .tx = RAMP } }")}),
    ("csl-switch-inputs", "wse2", {"layout": switched(".switches = .{ .pos1 = .{ .rx = WEST } }")}),
    ("csl-switch-color", "wse2", {"layout": switched(".switches = .{ .pos1 = .{ .tx = RAMP } }")}),
    ("csl-filter-counter", "wse2", {"layout": switched(".filter = .{ .kind = .{ .range = true } }")}),
    ("csl-bind", "wse2", {"comptime": "@activate(id);"}),
    ("csl-call", "wse2", {"comptime": "@activate(done);"}),
    ("csl-bound-twice", "wse2", {"comptime": "@bind_local_task(done, @get_local_task_id(10));"}),
    ("csl-reserved-id", "wse2", {"comptime": "@bind_local_task(done, @get_local_task_id(20));"}),
    (
        "csl-task-result",
        "wse2",
        {"top": "task t() void {}", "comptime": "@bind_local_task(t, @get_local_task_id(10));"},
    ),
    (
        "csl-task-parameters",
        "wse2",
        {
            "top": "task t(a: u16, b: i16) void {}",
            "comptime": "@bind_data_task(t, @get_data_task_id(red));",
        },
    ),
    ("csl-queue-twice", "wse2", {"comptime": "@initialize_queue(@get_input_queue(4), .{ .color = red });"}),
    (
        "csl-queue-color",
        "wse3",
        {"comptime": "@initialize_queue(@get_input_queue(4), .{ .color = @get_color(7) });"},
    ),
    (
        "csl-queue-missing",
        "wse2",
        {
            "top": "const other = @get_dsd(fabin_dsd, .{ .extent = 4, .input_queue = @get_input_queue(5) });",
            "body": "@fmovs(da, other);",
            "comptime": "@initialize_queue(@get_input_queue(5), .{ .color = @get_color(7) });",
        },
    ),
    (
        "csl-queue-other",
        "wse3",
        {
            "top": "const o = @get_dsd(fabout_dsd, .{ .extent = 4, .output_queue = oq });",
            "body": "@fmovs(o, da);",
        },
    ),
    (
        "csl-memcpy-queue",
        "wse3",
        {"comptime": "@initialize_queue(@get_input_queue(4), .{ .color = @get_color(7) });"},
    ),
    (
        "csl-export-missing",
        "wse2",
        {"layout": '@export_name("z", [*]f32, true);', "comptime": '@export_symbol(p, "z");'},
    ),
    (
        "csl-export-type",
        "wse2",
        {"layout": '@export_name("z", [*]f32, true);', "comptime": '@export_symbol(p, "z");'},
    ),
    (
        "csl-export-parameters",
        "wse2",
        {
            "top": f"fn many({', '.join(f'a{i}: u16' for i in range(15))}) void {{"
            " sys_mod.unblock_cmd_stream(); }",
            "comptime": "@export_symbol(many);",
            "layout": f'@export_name("many", fn({", ".join(["u16"] * 15)})void);',
        },
    ),
    (
        "csl-export-array",
        "wse2",
        {
            "top": "const q: [*]f32 = &b;",
            "comptime": '@export_symbol(q, "b");',
            "layout": '@export_name("b", [*]f32, true);',
        },
    ),
    ("csl-destination", "wse2", {"body": "@fmovs(sent, da);"}),
    ("csl-source", "wse2", {"body": "@fmovs(sent, received);"}),
    ("csl-two-fabin", "wse3", {"body": "@fadds(da, da, received);"}),
    ("csl-async-memory", "wse2", {"body": "@fmovs(sent, db, .{ .async = true });"}),
    ("csl-async-two", "wse2", {"body": "@fmovs(da, received, .{ .async = true, .unblock = id });"}),
    ("csl-async-missing", "wse2", {"body": "@fmovs(da, received, .{ .async = true, .activate = id });"}),
    ("csl-fmac-scalar", "wse2", {"body": "@fmacs(da, da, db, b[0]);"}),
    (
        "csl-call-array",
        "wse2",
        {
            "top": "const c = [2]f32 { 1.0, 2.0 }; fn second(x: [2]f32) f32 { return x[1]; }"
            "fn third(x: *[16]f32) f32 { return (x.*)[2]; }",
            "body": "b[0] = third(&a) + second(c);",
        },
    ),
    (
        "csl-suffix",
        "wse2",
        {
            "top": "var w: [4]u32; const dw = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> w[i] });"
            "var hf: [4]f16; const dh = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> hf[i] });",
            "body": "@fmovs(dw, da); @fh2s(da, dh); @faddh(dh, dh, 1.0);",
        },
    ),
    (
        "csl-index",
        "wse2",
        {
            "top": "const moved = @get_dsd(mem1d_dsd, "
            ".{ .tensor_access = |i|{4} -> a[i], .wavelet_index_offset = true });",
            "body": "@fmovs(moved, moved, .{ .index = 3 });",
        },
    ),
    (
        "csl-extents",
        "wse2",
        {
            "top": "const half = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{16} -> b[i] });",
            "body": "@fmovs(da, half);",
        },
    ),
    (
        "csl-load-mem4d",
        "wse2",
        {"top": "const dsr = @get_dsr(dsr_src0, 3);", "body": "@load_to_dsr(dsr, da);"},
    ),
    ("csl-map-fifo", "wse2", {"top": "fn f(v: f32) f32 { return v; }", "body": "@map(f, db, da);"}),
    ("csl-loop-32", "wse2", {"body": "for (@range(u16, 9)) |i| { b[0] += 1.0; }"}),
    ("csl-dsd-range", "wse2", {"top": FAR, "body": "@fmovs(far, far);"}),
    (
        "csl-dsd-element",
        "wse2",
        {"top": "var w: [4]u32; const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> w[i] });"},
    ),
    ("csl-fifo-var", "wse2", {"top": "var buffer = @zeros([8]f32); const fifo = @allocate_fifo(buffer);"}),
    ("csl-fifo-buffer", "wse2", {"top": "var buffer = @zeros([8]f32); const fifo = @allocate_fifo(buffer);"}),
    ("csl-memcpy-dsr", "wse2", {"top": "const r = @get_dsr(dsr_dest, 1);"}),
    ("csl-memory", "wse2", {"top": "var large = @zeros([12000]f32);", "body": "large[0] = 1.0;"}),
    (
        "csl-simd-stride",
        "wse2",
        {
            "top": "var wide = @zeros([72]f32);"
            "const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> wide[9 * i] });"
        },
    ),
    (
        "csl-simd-extent",
        "wse2",
        {"top": "const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{16} -> h[i] });"},
    ),
    (
        "csl-bank",
        "wse2",
        {
            "top": "const even = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> b[i] });"
            "const later = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> b[i + 7] });",
            "body": "@fadds(even, even, later);",
        },
    ),
    (
        "csl-held-up",
        "wse2",
        {
            "top": "task first() void { @fmovs(da, received, .{ .async = true }); }",
            "comptime": "@bind_local_task(first, @get_local_task_id(10)); @activate(first);",
        },
    ),
    (
        "csl-map-register",
        "wse2",
        {
            "top": "fn f(v: f32) f32 { return v; } const out = @get_dsr(dsr_dest, 3);"
            "const from = @get_dsr(dsr_src1, 3);",
            "body": "@map(f, from, out);",
        },
    ),
    (
        "csl-map-step",
        "wse2",
        {
            "top": "fn f(v: f32) void {} const from = @get_dsr(dsr_src1, 3);"
            "const single = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{16} -> a[i], .single_step = true });",
            "body": "@load_to_dsr(from, single); @map(f, from);",
        },
    ),
    (
        "csl-simd-mode",
        "wse2",
        {
            "top": "const dh = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{16} -> h[i] });"
            "const one = @get_dsd(fabin_dsd, "
            ".{ .extent = 16, .input_queue = iq, .simd_mode = .{ .simd_off = true } });",
            "body": "@fmovh(dh, one, .{ .async = true, .activate = done });",
        },
    ),
]


@pytest.mark.parametrize(("code", "arch", "severity", "holes"), BROKEN)
def test_a_program_that_breaks_a_rule(
    code: str, arch: str, severity: str, holes: dict[str, str], tmp_path: Path
) -> None:
    said = found(tmp_path, arch, **holes)
    assert code in [d.code for d in said], said
    (first,) = [d for d in said if d.code == code]
    assert first.severity.value == severity
    assert first.span is not None
    assert first.notes or first.helps


@pytest.mark.parametrize(("code", "arch", "holes"), OBEYS)
def test_a_program_beside_it_that_obeys(code: str, arch: str, holes: dict[str, str], tmp_path: Path) -> None:
    said = found(tmp_path, arch, **holes)
    assert code not in [d.code for d in said]
    assert [d for d in said if d.severity.value == "error"] == []


def test_each_rule_that_breaks_has_a_program_that_obeys() -> None:
    assert {code for code, *_ in BROKEN} == {code for code, *_ in OBEYS}


def test_rpc_of_earlier_sdks_means_nothing(tmp_path: Path) -> None:
    assert found(tmp_path, comptime="@rpc(@get_data_task_id(sys_mod.LAUNCH));") == []


def test_a_launch_that_never_ends(tmp_path: Path) -> None:
    said = found(tmp_path, pe=PE.replace("sys_mod.unblock_cmd_stream();", ""))
    assert [d.code for d in said] == ["csl-no-unblock"]


def test_a_control_task_that_is_never_reached(tmp_path: Path) -> None:
    text = """
    task t(a: u16) void {}
    comptime { @bind_control_task(t, @get_control_task_id(40)); <unblock> }
    """
    layout = 'layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl"); }'
    (tmp_path / "layout.csl").write_text(layout)
    for unblock, codes in (("", ["csl-control-blocked"]), ("@unblock(@get_color(3));", [])):
        (tmp_path / "pe.csl").write_text(text.replace("<unblock>", unblock))
        assert [d.code for d in check(tmp_path / "layout.csl", "wse2")] == codes


def test_many_programs_that_differ_in_a_number(tmp_path: Path) -> None:
    (tmp_path / "pe.csl").write_text("param x: u16; var a: [4]f32;")
    (tmp_path / "layout.csl").write_text(
        "layout { @set_rectangle(65, 1);"
        'for (@range(u16, 65)) |x| @set_tile_code(x, 0, "pe.csl", .{ .x = x }); }'
    )
    (remark,) = check(tmp_path / "layout.csl", "wse2")
    assert remark.code == "csl-many-programs"
    assert "`x`" in remark.notes[0]


def test_what_stops_the_layout_comes_alone(tmp_path: Path) -> None:
    said = found(tmp_path, layout="@set_color_config(0, 0, red, .{});")
    assert [d.code for d in said] == ["csl-layout"]


def test_every_rule_has_its_numbers() -> None:
    assert all(rule.numbers.startswith("R") for rule in RULES)
    assert len({n for rule in RULES for n in rule.numbers.split(", ")}) >= 40


def test_branches_of_the_other_architecture_are_not_looked_at(tmp_path: Path) -> None:
    body = 'if (@is_arch("wse2")) { @fadds(da, received, received); }'
    assert found(tmp_path, "wse3", body=body) == []


STREAM = "const r = @get_dsd({kind}_dsd, .{{ .extent = 4, .fabric_color = red }});"
COLUMNS = "var m = @zeros([4, 4]f32);"
REFUSED = [
    ("csl-layout", {"layout": "@set_rectangle(2, 1);"}),
    ("csl-layout", {"layout": '@set_tile_code(0, 0, "pe.csl", .{ .memcpy_params = memcpy.get_params(0) });'}),
    ("csl-misplaced", {"body": "@set_color_config(0, 0, red, .{});"}),
    ("csl-misplaced", {"body": "@set_local_color_config(red, .{});"}),
    ("csl-misplaced", {"body": "@bind_local_task(done, id);"}),
    ("csl-misplaced", {"body": "@initialize_queue(iq, .{});"}),
    ("csl-misplaced", {"body": "@export_symbol(p);"}),
    ("csl-misplaced", {"layout": "@initialize_queue(@get_input_queue(2), .{});"}),
    ("csl-color", {"layout": "@set_color_config(0, 0, blue, .{});"}),
    ("csl-color", {"layout": config(0, "RAMP", "EAST", "@get_color(24)")}),
    ("csl-color", {"layout": config(0, "RAMP", "EAST, EAST")}),
    ("csl-color", {"layout": switched(".switches = .{ .pos4 = .{ .tx = RAMP } }")}),
    ("csl-color", {"layout": switched(".filter = .{ .kind = .{ .counter = true }, .min_idx = 3 }")}),
    ("csl-color", {"layout": switched(".filter = .{ .kind = .{ .range = true }, .max_counter = 3 }")}),
    ("csl-task-id", {"top": "const t = @get_data_task_id(iq);", "comptime": "@block(t);"}),
    ("csl-id", {"comptime": "@initialize_queue(@get_input_queue(255), .{});"}),
    ("csl-id", {"comptime": "@bind_local_task(done, @get_local_task_id(32));"}),
    ("csl-queue-none", {"top": STREAM.format(kind="fabin"), "body": "@fmovs(da, r);"}),
    (
        "csl-queue-none",
        {"body": "var n: u16 = 4; n += 1; @fmovs(da, @get_dsd(fabin_dsd, .{ .extent = n }));"},
    ),
    (
        "csl-not-comptime",
        {
            "body": "var n: u16 = 3; n += 1;"
            "@fmovs(@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> a[i + n] }), db);"
        },
    ),
    (
        "csl-access",
        {
            "top": COLUMNS + "const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> m[i] });",
            "body": "@fmovs(d, d);",
        },
    ),
    (
        "csl-dsd",
        {
            "top": "var w = @zeros([801]f32);"
            "const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> w[200 * i] });",
            "body": "@fmovs(d, d);",
        },
    ),
    (
        "csl-dsd",
        {
            "top": COLUMNS + "const d = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{4, 4} -> m[i, j] });",
            "body": "const e = @set_dsd_length(d, 4); @fmovs(e, e);",
        },
    ),
    (
        "csl-dsd",
        {
            "top": COLUMNS + "const d = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{4, 4} -> m[i, j] });",
            "body": "const e = @set_dsd_stride(d, 2); @fmovs(e, e);",
        },
    ),
    ("csl-operand", {"body": "var i: u16 = 1; var j: u32 = 2; j = i + j;"}),
    ("csl-keyword", {"top": "var comptime: u16;"}),
]
"""Of R01 to R07, R13, R14, R20, R26, R36, R40, R47 and R52: errors of the compiler's stages."""


@pytest.mark.parametrize(("code", "holes"), REFUSED)
def test_what_the_compiler_refuses(code: str, holes: dict[str, str], tmp_path: Path) -> None:
    found(tmp_path, **holes)
    (first, *_) = faults(tmp_path / "layout.csl", "wse2")
    assert (first.code, first.severity.value) == (code, "error")
    assert first.span is not None
    assert first.notes or first.helps


def test_an_output_without_a_queue_is_the_first_one_on_wse2_only(tmp_path: Path) -> None:
    found(tmp_path, top=STREAM.format(kind="fabout"), body="@fmovs(r, da);")
    said = {arch: [d.code for d in faults(tmp_path / "layout.csl", arch)] for arch in ("wse2", "wse3")}
    assert said == {"wse2": [], "wse3": ["csl-queue-none"]}


@pytest.mark.parametrize("wrong", ["", "@set_tile_code(0, 0, 3);"])
def test_a_layout_that_sets_no_rectangle(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "layout.csl").write_text(f"layout {{ {wrong} }}")
    assert [d.code for d in check(tmp_path / "layout.csl", "wse2")] == ["csl-layout"]


def test_deep_recursion_in_a_global_that_a_task_needs(tmp_path: Path) -> None:
    text = "fn f(n: comptime_int) comptime_int { return if (n == 0) 0 else 1 + f(n - 1); }"
    body = "var y: u32 = deep; y = y; a[0] = @as(f32, y);"
    for depth, codes in ((150, []), (100_000, ["csl-too-deep"])):
        top = f"{text} const deep = f({depth});"
        found(tmp_path, top=top, body=body)
        said = faults(tmp_path / "layout.csl", "wse2")
        assert [d.code for d in said] == codes
        assert [d for d in found(tmp_path, top=top, body=body) if d.severity.value != "error"] == []
