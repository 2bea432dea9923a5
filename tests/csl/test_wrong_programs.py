"""Wrong programs: one diagnostic each, with its place and a way out."""

from __future__ import annotations

import pytest
from csl_text import fault_of, program

from polyloom.csl import values
from polyloom.csl.comptime import modules

WRONG = [
    ("const x = y;", "csl-unknown"),
    ("const wide = 1; const x = wid;", "csl-unknown"),
    ("const x = y; const y = x;", "csl-cycle"),
    ("const a = 1; const a = 2;", "csl-twice"),
    ("const x = struct { a: u16, a: u16 };", "csl-twice"),
    ("const x = enum(u16) { a, b, a };", "csl-twice"),
    ("const x;", "csl-declaration"),
    ("var x;", "csl-declaration"),
    ("const x: u8 = 300;", "csl-range"),
    ("const x: u16 = -1;", "csl-range"),
    ("const x = @as(u16, 1) << 16;", "csl-range"),
    ("const x = 1 << 100000;", "csl-range"),
    ("const x: [1 - 2]u16 = @zeros([1]u16);", "csl-range"),
    ("const x = 1 / 0;", "csl-zero"),
    ("const x = 1 % 0;", "csl-zero"),
    ("const x = @range(u16, 0, 4, 0);", "csl-zero"),
    ("const x: bool = 1;", "csl-type"),
    ("const x: u16 = 1.5;", "csl-type"),
    ("const x: f32 = @as(u16, 1);", "csl-type"),
    ("const x: color = 3;", "csl-type"),
    ("const x: 3 = 3;", "csl-type"),
    ("const x = if (1) 2 else 3;", "csl-type"),
    ("const x = [2]u16{ 1, 2, 3 };", "csl-type"),
    ("const x = u16{ 1 };", "csl-type"),
    ("const x = @bitcast(u16, @as(f32, 1.0));", "csl-type"),
    ("const x = @zeros(color);", "csl-type"),
    ("const x = @constants(u16, 1);", "csl-type"),
    ("const x = @get_color(true);", "csl-type"),
    ("const x = anytype;", "csl-type"),
    ("fn f() u16 { for (3) |i| {} return 1; } const x = f();", "csl-type"),
    ("const x = 1 + true;", "csl-operand"),
    ("const x = @as(u16, 1) + @as(i16, 1);", "csl-operand"),
    ("const x = @as(f16, 1.0) * @as(f32, 1.0);", "csl-operand"),
    ("const x = 1.5 % 1.0;", "csl-operand"),
    ("const x = !1;", "csl-operand"),
    ("const x = -true;", "csl-operand"),
    ('const x = "a" < "b";', "csl-operand"),
    ("const x = u16 < u32;", "csl-operand"),
    ("const x = .{ .a = 1 }.b;", "csl-field"),
    ("const x = (3).b;", "csl-field"),
    ("const P = struct { a: u16 }; const x = P{ .b = 1 };", "csl-field"),
    ("const P = struct { a: u16 }; const x = P{};", "csl-field"),
    ("const x = .{ .a = 1, .a = 2 };", "csl-field"),
    ("const E = enum(u16) { a }; const x: E = .b;", "csl-field"),
    ("const U = union { a: u16, b: i16 }; const x = U{ .a = 1, .b = 2 };", "csl-field"),
    ("const x = [2]u16{ 1, 2 }[2];", "csl-index"),
    ("const x = [2]u16{ 1, 2 }[0, 1];", "csl-index"),
    ("const x = .{ 1 }[1];", "csl-index"),
    ("fn f(a: u16) u16 { return a; } const x = f();", "csl-call"),
    ("const x = (3)();", "csl-call"),
    ("task t() void {} const x = t();", "csl-call"),
    ("extern fn f() u16; const x = f();", "csl-call"),
    ("const x = @get_color();", "csl-call"),
    ("fn f() u16 {} const x = f();", "csl-return"),
    ("fn f() u16 { break; } const x = f();", "csl-jump"),
    ("fn f() void { while (true) {} } const x = f();", "csl-endless"),
    ("fn f() void { f(); } const x = f();", "csl-too-deep"),
    ("fn f() u16 { const a = 1; a = 2; return a; } const x = f();", "csl-constant"),
    ("fn f() u16 { var a: u16; return a; } const x = f();", "csl-uninitialised"),
    ("const x = @nothing();", "csl-builtin"),
    ("const x = @get_colour(1);", "csl-builtin"),
    ("const x = @concat_structs(.{}, 3);", "csl-type"),
    ("const x = @concat_structs(.{ .a = 1 }, .{ .a = 1 });", "csl-field"),
    ('const x = @is_arch("wse9");', "csl-arch"),
    ("const x = @get_color(99);", "csl-id"),
    ("const x = @get_input_queue(8);", "csl-id"),
    ("const x = @get_output_queue(6);", "csl-id"),
    ("const x = @get_local_task_id(40);", "csl-id"),
    ("const x = @get_data_task_id(@get_input_queue(2));", "csl-task-id"),
    ("const x = @get_dsr(u16, 1);", "csl-type"),
    ("const x = @get_dsr(dsr_dest, 99);", "csl-id"),
    ('const x = @import_module("none.csl");', "csl-import"),
    ('const x = @import_module("<none>");', "csl-import"),
    ('const x = @import_module("<math>", 3);', "csl-type"),
    ("const x = @comptime_assert(1 == 2);", "csl-assert"),
    ('comptime { @comptime_assert(1 == 2, "one is not two"); }', "csl-assert"),
    ("var v: u16 = 1; const x = v + 1;", "csl-not-comptime"),
    ("var v: u16 = 1; const x: [v]u16 = @zeros([v]u16);", "csl-not-comptime"),
    ("var v: u16 = 1; comptime { v = 2; }", "csl-not-comptime"),
    ("comptime { @mov32(1, 2); }", "csl-not-comptime"),
    ("const x = @bind_local_task(1, 2);", "csl-misplaced"),
    ("comptime { @set_rectangle(1, 1); }", "csl-misplaced"),
    ("comptime { @export_symbol(3); }", "csl-export"),
    ("fn f(a: u16) u16 { switch (a) { 1 => { return 2; } } return 3; } const x = f(2);", "csl-switch"),
    ("const x = switch (2) { 1 => 1 };", "csl-switch"),
    ("const x = b: { return 1; };", "csl-jump"),
    ("const x = (3).*;", "csl-pointer"),
    ("const x = |i|{3} -> A[i];", "csl-access"),
    ("var A: [4]f32; const x = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> A[i * i] });", "csl-access"),
    ("var A: [4]f32; const x = @get_dsd(mem1d_dsd, .{ .tensor_access = |i, j|{4} -> A[i] });", "csl-access"),
    ("var A: [4]f32; const x = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> A[i, i] });", "csl-access"),
    (
        "var A: [4, 4]f32; const x = @get_dsd(mem1d_dsd, .{ .tensor_access = |i, j|{4, 4} -> A[i, j] });",
        "csl-dsd",
    ),
    (
        "var A: [999]f32; const x = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> A[200 * i] });",
        "csl-dsd",
    ),
    ("var A: [4]f32; const x = @get_dsd(mem1d_dsd, .{ .extent = 4 });", "csl-dsd"),
    ("var A: [4]f32; const x = @get_dsd(mem1d_dsd, .{ .base_address = &A });", "csl-dsd"),
    ("var A: [4]f32; const x = @get_dsd(mem1d_dsd, .{ .base = &A });", "csl-dsd"),
    ("const x = @get_dsd(u16, .{ .extent = 4 });", "csl-dsd"),
    ("const x = @get_dsd(fabin_dsd, .{ .input_queue = @get_input_queue(2) });", "csl-dsd"),
    ("const x = @get_dsd(fabin_dsd, .{ .extent = 1, .output_queue = @get_output_queue(2) });", "csl-dsd"),
    ("const x = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = 3 });", "csl-dsd"),
    ("const x = @get_dsd(fabout_dsd, .{ .extent = 70000 });", "csl-range"),
    ("const x = @allocate_fifo(3);", "csl-fifo"),
    ("const x = @set_dsd_length(3, 4);", "csl-dsd"),
    (
        "var A: [4]f32; const d = @get_dsd(mem4d_dsd, .{ .tensor_access = |i|{4} -> A[i] });"
        "const x = @set_dsd_length(d, 2);",
        "csl-dsd",
    ),
    ("param p: u16; const x = p;", "csl-param"),
]


@pytest.mark.parametrize(("text", "code"), WRONG)
def test_one_diagnostic(text: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "MOST_STEPS", 1000)
    found = fault_of(text)
    assert found.code == code, found
    assert found.span is not None
    assert found.span.text or found.span.start == len(text)
    assert found.helps


def test_there_are_a_hundred() -> None:
    assert len(WRONG) >= 100


def test_what_the_language_had_before_works_and_is_warned_of() -> None:
    text = """
    fn merged(a: comptime_struct) comptime_struct { return @concat_structs(a, .{ .b = 2 }); }
    const x = merged(.{ .a = 1 }).b;
    """
    found = program(text)
    member = found.root.member("x")
    assert isinstance(member, values.Variable)
    assert member.value == values.integer(2)
    assert [w.code for w in found.warnings] == ["csl-removed"] * 3


def test_an_unknown_parameter_is_warned_of() -> None:
    found = program('const m = @import_module("<math>", .{ .nothing = 1 });')
    (warning,) = found.warnings
    assert warning.code == "csl-no-param"


def test_ids_differ_by_architecture() -> None:
    assert fault_of("const x = @get_local_task_id(3);", "wse3").code == "csl-id"
    assert fault_of("const x = @get_data_task_id(@get_color(3));", "wse3").code == "csl-task-id"
    with pytest.raises(AssertionError, match="nothing is wrong"):
        fault_of("const x = @get_output_queue(7);", "wse3")
