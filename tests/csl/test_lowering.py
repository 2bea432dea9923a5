"""What programs compute at run time, against numbers computed in Python."""

from __future__ import annotations

import numpy as np
import pytest
from csl_runs import HEAD, Run, lowered, results

from polyloom.csl.lowering import unit
from polyloom.diagnostics import PolyloomError
from polyloom.wafer.simulator.csl_fabric import CslFailure

EXPORTS = """
comptime { @export_symbol(p, "out"); @export_symbol(main); }
"""


def scalars(kind: str, count: int, statements: str, globals_: str = "") -> str:
    """Return a program whose ``main`` runs the statements, which fill ``out``."""
    return f"""{HEAD}
    param memcpy_params = {{}};
    var out: [{count}]{kind};
    var p: [*]{kind} = &out;
    {globals_}
    fn main() void {{ {statements} sys.unblock_cmd_stream(); }}
    {EXPORTS}"""


def test_integers_wrap_around() -> None:
    body = """
      var a: i16 = 32767; var b: i16 = -7; var c: u16 = 65535;
      a += 1; out[0] = a; out[1] = b / 2; out[2] = b % 2;
      out[3] = @bitcast(i16, c * c); out[4] = b >> 1; out[5] = b << 13; out[6] = ~b; out[7] = -b & 12;
    """
    wrapped = np.array([-7 << 13], np.int64).astype(np.int16)[0]
    expected = [-32768, -3, -1, 1, -4, int(wrapped), 6, 4]
    assert results(scalars("i16", 8, body), np.int16, 8) == expected


def test_wide_integers_and_conversions() -> None:
    body = """
      var a: u16 = 65000; var b: i16 = -3; var f: f32 = -2.75; var g: f16 = 0.1;
      out[0] = @as(u32, a) * 70000; out[1] = @bitcast(u32, @as(i32, b)); out[2] = @bitcast(u32, @as(i32, f));
      out[3] = @bitcast(u32, @as(f32, g)); out[4] = @as(u32, @bitcast(u16, g)) | (@as(u32, a) << 16);
      out[5] = @as(u32, b < 0);
      var wide: i32 = -8; var far: u16 = 40;
      out[6] = @bitcast(u32, wide >> 1); out[7] = @as(u32, 1) << far;
    """
    half = np.float16(0.1)
    expected = [
        65000 * 70000 % 2**32,
        2**32 - 3,
        2**32 - 2,
        int(np.float32(half).view(np.uint32)),
        int(half.view(np.uint16)) | 65000 << 16,
        1,
        2**32 - 4,
        0,
    ]
    assert results(scalars("u32", 8, body), np.uint32, 8) == expected


def test_control_flow() -> None:
    body = """
      var n: i16 = 0; var i: i16 = 0;
      while (i < 10) : (i += 1) { if (i == 3) continue; if (i == 7) break; n += i; }
      out[0] = n; out[1] = i;
      for (@range(i16, 2, 12, 3)) |k| { out[2] += k; }
      for (data) |x, k| { out[3] += x * @as(i16, k); }
      switch (n) { 0, 1 => { out[4] = 1; }, 18 => { out[4] = 2; }, else => { out[4] = 3; } }
      out[5] = if (n > 5 and i != 7) 1 else if (n > 5 or false) 2 else 3;
      out[6] = blk: { if (n > 100) break :blk 1; break :blk 4; };
      outer: while (true) { for (@range(i16, 9)) |k| { out[7] = k; if (k == 5) break :outer; } }
    """
    more = "var data = [3]i16 { 5, 6, 7 };"
    text = scalars("i16", 8, body, more).replace("var out: [8]i16;", "var out = @zeros([8]i16);")
    assert results(text, np.int16, 8) == [0 + 1 + 2 + 4 + 5 + 6, 7, 2 + 5 + 8 + 11, 6 + 14, 2, 2, 4, 5]


def test_pointers_arrays_and_structs() -> None:
    body = """
      var local = [3]i16 { 1, 2, 3 };
      bump(&local, &out[0]);
      var copy = local; copy[1] = 50; out[1] = local[1]; out[2] = copy[1];
      matrix[1, 2] = 9; out[3] = matrix[1, 2] + matrix[0, 1];
      var q = @ptrcast([*]i16, &matrix); out[4] = q[5];
      var pair = Pair{ .a = 3, .b = 4.5 }; pair.a += 1; out[5] = pair.a + @as(i16, pair.b);
      out[6] = swapped(pair).a; state.a = 8; out[7] = state.a;
    """
    more = """
      const Pair = struct { a: i16, b: f32 };
      var state = Pair{ .a = 0, .b = 0.0 };
      var matrix = @zeros([2, 3]i16);
      fn bump(data: *[3]i16, sum: *i16) void {
        for (@range(i16, 3)) |i| { (data.*)[i] += 1; }
        sum.* = data[0] + data[1] + (data.*)[2];
      }
      fn swapped(x: Pair) Pair { return Pair{ .a = @as(i16, x.b), .b = @as(f32, x.a) }; }
    """
    assert results(scalars("i16", 8, body, more), np.int16, 8) == [9, 3, 50, 9, 9, 8, 4, 8]


def test_functions_are_specialised() -> None:
    body = """
      out[0] = power(3, n); out[1] = power(2, n); out[2] = largest(n, 2); out[3] = @as(i16, largest(1.5, x));
      out[4] = apply(twice, n); out[5] = early(n) + early(-n);
    """
    more = """
      var n: i16 = 4; var x: f32 = 2.5;
      fn power(comptime times: u16, value: i16) i16 {
        var result: i16 = 1;
        comptime { @comptime_assert(times < 5); }
        for (@range(u16, times)) |_| { result *= value; }
        return result;
      }
      fn largest(a: anytype, b: @type_of(a)) @type_of(a) { if (a > b) { return a; } return b; }
      fn twice(v: i16) i16 { return 2 * v; }
      fn apply(f: fn(i16)i16, v: i16) i16 { return f(f(v)); }
      fn early(v: i16) i16 { if (v > 0) return 10; return 1; }
    """
    more = more.replace("b: @type_of(a)", "b: anytype").replace("out[2] = largest(n, 2)", "")
    body = body.replace("largest(n, 2)", "largest(n, @as(i16, 2))").replace("1.5, x", "@as(f32, 1.5), x")
    assert results(scalars("i16", 6, body, more), np.int16, 6) == [64, 16, 4, 2, 16, 11]


def test_memory_descriptors() -> None:
    body = """
      @fmacs(y, y, column, x[0]);
      column = @increment_dsd_offset(column, 1, f32);
      @fmacs(y, y, column, x[1]);
      @fadds(y, y, y0);
      const back = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{3} -> a[2 - i, 0] });
      @fmovs(@set_dsd_base_addr(y0, &out[3]), back);
      var few = @set_dsd_length(y0, 2);
      few = @set_dsd_stride(@set_dsd_base_addr(few, p), 2);
      @fmuls(few, few, 10.0);
    """
    more = """
      var a = [3, 2]f32 { 1.0, 2.0, 3.0, 4.0, 5.0, 6.0 };
      var x = [2]f32 { 10.0, 100.0 };
      var column = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{3} -> a[i, 0] });
      const y = @get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 3 });
      const ones = @constants([3]f32, 1.0);
      var y0 = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{3} -> ones[i] });
    """
    text = scalars("f32", 6, body, more).replace("var out: [6]f32;", "var out = @zeros([6]f32);")
    assert results(text, np.float32, 6) == [2110.0, 431.0, 6510.0, 5.0, 3.0, 1.0]


def test_registers_continue_where_they_ended() -> None:
    body = """
      @load_to_dsr(to, y, .{ .save_address = false });
      @load_to_dsr(from, y, .{ .save_address = false });
      @load_to_dsr(rows, pair, .{ .save_address = true });
      @map(step, @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{3} -> x[i] }));
    """
    more = """
      var a = [6]f32 { 1.0, 2.0, 3.0, 4.0, 5.0, 6.0 };
      var x = [3]f32 { 1.0, 10.0, 100.0 };
      const y = @get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 2 });
      const pair = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{2} -> a[i] });
      const to = @get_dsr(dsr_dest, 1); const from = @get_dsr(dsr_src0, 1);
      const rows = @get_dsr(dsr_src1, 1);
      fn step(value: f32) void { @fmacs(to, from, rows, value); }
    """
    text = scalars("f32", 2, body, more).replace("var out: [2]f32;", "var out = @zeros([2]f32);")
    assert results(text, np.float32, 2) == [531.0, 642.0]


def test_map_with_captured_values_and_a_reduction() -> None:
    body = """
      @map(scaled, d, 2.0, offset, d);
      @map(sum, d, &out[3], &out[3]);
    """
    more = """
      var offset: f32 = 0.5;
      const d = @get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 3 });
      fn scaled(v: f32, factor: f32, more: f32) f32 { return v * factor + more; }
      fn sum(v: f32, total: *f32) f32 { return total.* + v; }
    """
    text = scalars("f32", 4, body, more).replace(
        "var out: [4]f32;", "var out = [4]f32 { 1.0, 2.0, 3.0, 0.0 };"
    )
    assert results(text, np.float32, 4) == [2.5, 4.5, 6.5, 13.5]


TASKS = (
    HEAD
    + """
    param memcpy_params = {};
    var out = @zeros([4]u16);
    var p: [*]u16 = &out;
    const first_id = @get_local_task_id(9); const second_id = @get_local_task_id(10);
    var n: u16 = 0;
    task first() void { out[n] = 1; n += 1; @activate(second_id); }
    task second() void {
      out[n] = 2; n += 1;
      if (n == 4) { sys.unblock_cmd_stream(); } else { @activate(first); }
    }
    fn main() void { @activate(first_id); }
    comptime {
      @bind_local_task(first, first_id); @bind_local_task(second, second_id);
      @export_symbol(p, "out"); @export_symbol(main);
    }
"""
)


@pytest.mark.parametrize("arch", ["wse2", "wse3"])
def test_tasks_by_id(arch: str) -> None:
    assert results(TASKS, np.uint16, 4, arch) == [1, 2, 1, 2]


def test_arguments_from_the_host() -> None:
    text = scalars("f32", 1, "").replace(
        "fn main() void {", "fn main(a: f32, n: i16) void { out[0] = a * @as(f32, n);"
    )
    run = Run(text)
    run.call("main", int(np.float32(1.5).view(np.uint32)), 0xFFFE)
    assert run.array("out", np.float32, 1).tolist() == [-3.0]


@pytest.mark.parametrize(
    ("statements", "kind"),
    [
        ("var i: u16 = 7; out[i] = 1;", "out-of-bounds"),
        ("var n: i16; out[0] = n;", "poison"),
        ("out[0] = out[1];", "poison"),
        ("var z: i16 = 0; out[0] = 4 / z;", "division"),
        ("var z: i16 = 0; @assert(z == 1);", "assertion"),
    ],
)
def test_what_stops_a_program(statements: str, kind: str) -> None:
    run = Run(scalars("i16", 4, statements))
    with pytest.raises(CslFailure) as caught:
        run.call("main")
    assert caught.value.fault.kind == kind
    assert caught.value.fault.place is not None
    assert caught.value.fault.place == ("pe.csl", 8)


def test_functions_that_call_themselves() -> None:
    body = "out[0] = factorial(n); out[1] = even(n);"
    more = """
    var n: u16 = 5;
    fn factorial(k: u16) u16 { if (k < 2) { return 1; } return k * factorial(k - 1); }
    fn even(k: u16) u16 { if (k == 0) { return 1; } return odd(k - 1); }
    fn odd(k: u16) u16 { if (k == 0) { return 0; } return even(k - 1); }
    """
    assert results(scalars("u16", 2, body, more), np.uint16, 2) == [120, 0]


def test_registers_loaded_in_comptime_blocks() -> None:
    more = """
    var b = @constants([4]u16, 7);
    const to = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> out[i] });
    const from = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> b[i] });
    const there = @get_dsr(dsr_dest, 2); const here = @get_dsr(dsr_src1, 3);
    comptime { const n = 4; @load_to_dsr(there, to); @load_to_dsr(here, @set_dsd_length(from, n)); }
    """
    assert results(scalars("u16", 4, "@mov16(there, here);", more), np.uint16, 4) == [7] * 4


def test_a_recursion_that_never_ends_is_an_error_of_the_run() -> None:
    text = scalars("u16", 1, "out[0] = f(n);", "var n: u16 = 1; fn f(k: u16) u16 { return f(k) + 1; }")
    with pytest.raises(CslFailure, match="calls itself more than 64 times"):
        results(text, np.uint16, 1)


@pytest.mark.parametrize(
    ("statements", "code"),
    [
        ("var a: u16 = 1; var b: i16 = 2; out[0] = a + b;", "csl-operand"),
        ("var a: u32 = 1; out[0] = a;", "csl-type"),
        ("var f: f32 = 1.0; out[0] = f;", "csl-type"),
        ("var n = 4; out[0] = 1;", "csl-runtime-type"),
        ("out[4] = 1;", "csl-bounds"),
        ("const c: i16 = 1; c = 2; out[0] = c;", "csl-assign"),
        ("break;", "csl-jump"),
        ("loop();", "csl-recursion"),
        ("work();", "csl-call"),
        ("@activate(work);", "csl-task"),
        ("@mov16(3, out[0]);", "csl-operand"),
        ("var a: i16 = 1; a;", "csl-unused"),
        ("const q = &(out[0] + 1);", "csl-address"),
        ("@load_to_dsr(out[0], d);", "csl-arguments"),
        ("outside();", "csl-extern"),
        ("var s = Pair{ .a = 1 }; s.b = 2;", "csl-name"),
        ("for (n) |x| { out[0] = x; }", "csl-for"),
        ("comptime while (true) { out[0] = 1; }", "csl-too-long"),
        ("@fadds(y, y);", "csl-arguments"),
        ("@mov16(d, d, .{ .asynchronous = true });", "csl-option"),
        ("@map(n, d);", "csl-map"),
        ("_ = @get_dsd(mem1d_dsd, .{ .base_address = p });", "csl-dsd"),
        ("var i: i16 = 0; _ = p[i, i];", "csl-index"),
    ],
)
def test_what_is_refused(statements: str, code: str) -> None:
    more = """
      fn loop() void { var c: u16 = 0; const q = &c; q.* = 1; again(); } fn again() void { loop(); }
      task work() void {} extern fn outside() void;
      const Pair = struct { a: i16 }; var n: i16 = 3;
      const d = @get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 4 });
    """
    with pytest.raises(PolyloomError) as caught:
        lowered(scalars("i16", 4, statements, more))
    assert [found.code for found in caught.value.diagnostics] == [code]
    assert caught.value.diagnostics[0].span is not None


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("fn f(comptime n: comptime_int) void { x = @as(u16, n % 7); f(n + 1); }", "csl-too-deep"),
        (
            "fn f(comptime n: comptime_int) void { x = 1; if (n < 99) { f(2 * n + 1); f(2 * n + 2); } }",
            "csl-endless",
        ),
    ],
)
def test_functions_made_without_end(function: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "MOST_FUNCTIONS", 50)
    text = f"var x: u16; {function} task t() void {{ f(0); }} "
    with pytest.raises(PolyloomError) as refused:
        lowered(text + "comptime { @bind_local_task(t, @get_local_task_id(9)); }")
    (found,) = refused.value.diagnostics
    assert found.code == code and found.span is not None and found.helps


def test_functions_for_many_values_are_made() -> None:
    text = "var x: u16; fn f(comptime n: comptime_int) void { x = n; if (n < 150) f(n + 1); }"
    made = lowered(text + "task t() void { f(0); } comptime { @bind_local_task(t, @get_local_task_id(9)); }")
    assert made.c.count("static void f_f_") >= 151
