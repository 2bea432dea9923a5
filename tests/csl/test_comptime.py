"""Expressions, functions and modules at compile time."""

from __future__ import annotations

from pathlib import Path

import pytest
from csl_text import layout, program, value

from polyloom.csl import types, values
from polyloom.csl.comptime import NotComptime, evaluate
from polyloom.csl.syntax import parse_expression
from polyloom.diagnostics import PolyloomError, Source


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("1 + 2 * 3", types.COMPTIME_INT, 7),
        ("-7 / 2", types.COMPTIME_INT, -3),
        ("-7 % 3", types.COMPTIME_INT, -1),
        ("@as(u16, 65535) + 1", types.U16, 0),
        ("@as(i16, 32767) + 1", types.I16, -32768),
        ("@as(u16, 1) << 15", types.U16, 32768),
        ("@as(i16, -10.8)", types.I16, -10),
        ("@as(u16, -1)", types.U16, 65535),
        ("@as(bool, -5)", types.BOOL, True),
        ("@as(u16, true)", types.U16, 1),
        ("@as(f16, 0.1)", types.F16, 0.0999755859375),
        ("@as(f32, 1) / 3", types.F32, 0.3333333432674408),
        ("@bitcast(u32, @as(f32, 1.0))", types.U32, 0x3F800000),
        ("@bitcast(f16, @as(u16, 0x3c00))", types.F16, 1.0),
        ("@bitcast(i16, @as(u16, 0xffff))", types.I16, -1),
        ("~@as(u16, 1)", types.U16, 65534),
        ("true and !false or false", types.BOOL, True),
        ("false and 1 / 0 == 0", types.BOOL, False),
        ("if (2 > 1) 5 else 6", types.COMPTIME_INT, 5),
        ('if (@is_arch("wse2")) 2 else @nothing()', types.COMPTIME_INT, 2),
        ("switch (3) { 1 => 10, 2, 3 => 20, else => 30 }", types.COMPTIME_INT, 20),
        ("b: { var i = 0; while (i < 5) : (i += 1) {} break :b i; }", types.COMPTIME_INT, 5),
        ("b: { var s: u16 = 0; for (@range(u16, 1, 10, 3)) |i| s += i; break :b s; }", types.U16, 12),
        ("b: { var s: u16 = 0; for ([2]u16{ 4, 5 }) |e, i| { s += e * i; } break :b s; }", types.U16, 5),
        (".{ 4, 5 }[1]", types.COMPTIME_INT, 5),
        (".{ .a = 4 }.a", types.COMPTIME_INT, 4),
        ('@strlen(@strcat("ab", "c"))', types.COMPTIME_INT, 3),
        ("@element_count([2, 3]f32)", types.COMPTIME_INT, 6),
        ("@get_int(@get_color(7))", types.U16, 7),
        ("@get_rectangle().width", types.COMPTIME_INT, 3),
        ("@is_same_type([2]u16, [1 + 1]u16)", types.BOOL, True),
        ('@has_field(struct { a: u16 }, "a")', types.BOOL, True),
        ("(enum(u16) { a, b = 5, c }).c == .c", types.BOOL, True),
        ("EAST == WEST", types.BOOL, False),
        ("@type_of(@as(u8, 3)) == u8", types.BOOL, True),
    ],
)
def test_expressions(text: str, type_: types.Type, expected: object) -> None:
    found = value(f"const x = {text};")
    assert isinstance(found, values.Scalar)
    assert (found.type, found.value) == (type_, expected)


def test_a_generic_function_and_recursion() -> None:
    text = """
    fn largest(comptime T: type, a: T, b: T) T { if (a > b) { return a; } return b; }
    fn twice(v: anytype) @type_of(v) { return v + v; }
    fn factorial(n: u32) u32 { return if (n < 2) 1 else n * factorial(n - 1); }
    const x = .{ largest(f16, 1.5, 2.5), twice(@as(i16, 4)), factorial(10) };
    """
    found = value(text)
    assert isinstance(found, values.TupleValue)
    assert [str(e.type) for e in found.elements] == ["f16", "i16", "u32"]
    assert [e.value for e in found.elements] == [2.5, 8, 3628800]  # type: ignore[attr-defined]


def test_arrays_and_structs_are_changed_in_place() -> None:
    text = """
    const Point = struct { x: u16, at: [2, 2]i16 = @zeros([2, 2]i16) };
    fn change(p: *Point) void { p.at[1, 0] = 7; p.*.x += 1; }
    const x = b: { var p = Point{ .x = 3 }; change(&p); p.at[0, 1] -= 2; break :b p; };
    """
    found = value(text)
    assert isinstance(found, values.StructValue)
    assert found.get("x") == values.Scalar(types.U16, 4)
    at = found.get("at")
    assert isinstance(at, values.ArrayValue)
    assert [e.value for e in at] == [0, -2, 7, 0]  # type: ignore[attr-defined]


def test_zeros_of_any_size_cost_nothing() -> None:
    found = value("const x = @zeros([60000, 60000]f32);")
    assert isinstance(found, values.ArrayValue)
    assert len(found.elements) == 1


def test_declarations_may_follow_their_uses_and_modules_are_copies(tmp_path: Path) -> None:
    (tmp_path / "m.csl").write_text("param n: u16 = 2; const twice = 2 * n; var a: [n]f32;")
    text = """
    const x = a.twice + b.twice;
    const a = @import_module("m.csl", .{ .n = size });
    const b = @import_module("m.csl");
    const size = 5;
    """
    found = program(text, folder=tmp_path)
    member = found.root.member("x")
    assert isinstance(member, values.Variable)
    assert member.value == values.Scalar(types.U16, 14)
    assert len(found.modules) == 3


def test_a_descriptor_of_a_tensor_access() -> None:
    text = """
    const n = 4;
    var A: [3, n]f32;
    const p: *[3, n]f32 = &A;
    const x = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{2, n} -> p[2 - i, (n - 1) - j] });
    const column = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{3} -> A[i, 1], .wavelet_index_offset = true });
    """
    found = value(text)
    assert isinstance(found, values.MemoryDsd)
    assert (found.extents, found.strides, found.offset) == ((2, 4), (-4, -1), 11)
    column = value(text, "column")
    assert isinstance(column, values.MemoryDsd)
    assert (column.extents, column.strides, column.offset) == ((3,), (4,), 1)
    assert dict(column.options) == {"wavelet_index_offset": values.TRUE}


def test_strides_as_steps() -> None:
    """A[2i + j] over 5 x 5 has steps 1 and -2: the inner dimension has gone 4 when the outer one advances."""
    text = """
    var A: [20]f32;
    const x = @get_dsd(mem4d_dsd, .{ .base_address = &A, .extents = .{5, 5}, .strides = .{1, -2} });
    """
    found = value(text)
    assert isinstance(found, values.MemoryDsd)
    assert (found.extents, found.strides) == ((5, 5), (2, 1))


def test_descriptors_are_changed_by_value() -> None:
    text = """
    var A: [20]f32; var B: [4]f32;
    const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{20} -> A[i] });
    const x = @set_dsd_stride(@set_dsd_length(@increment_dsd_offset(d, 3, f32), 4), 2);
    const y = @set_dsd_base_addr(x, B);
    """
    found, other = value(text), value(text, "y")
    assert isinstance(found, values.MemoryDsd)
    assert isinstance(other, values.MemoryDsd)
    assert (found.extents, found.strides, found.offset) == ((4,), (2,), 3)
    assert isinstance(other.base, values.Address)
    assert (other.base.variable.name, other.offset) == ("B", 0)


def test_directives_of_comptime_blocks() -> None:
    text = """
    const id = @get_local_task_id(9);
    const q = @get_input_queue(2);
    var a: [4]f32;
    var p: [*]f32 = &a;
    task go() void { a[0] = 1.0; }
    fn run() void { @activate(id); }
    fn bind(t: task () void) void { @bind_local_task(t, id); }
    comptime {
      bind(go);
      if (@is_arch("wse3")) { @initialize_queue(q, .{ .color = @get_color(3) }); }
      @export_symbol(p, "a");
      @export_symbol(run);
    }
    """
    on_wse3 = [d.name for d in program(text, arch="wse3").directives]
    assert on_wse3 == ["bind_local_task", "initialize_queue", "export_symbol", "export_symbol"]
    (bind, pointer, function) = program(text, arch="wse2").directives
    assert isinstance(bind.arguments[0], values.FunctionValue)
    assert bind.arguments[1] == values.Handle(types.LOCAL_TASK_ID, 9)
    assert isinstance(pointer.arguments[0], values.Address)
    assert pointer.arguments[0].variable.name == "p"
    assert [d.arguments[1] for d in (pointer, function)] == [values.string("a"), values.string("run")]


def test_what_is_known_at_run_time_only_is_no_fault() -> None:
    found = program("var a: u16 = 1; const b = 2; fn f() u16 { return a; } task t() void {}")
    scope = found.root.scope
    for text in ("a", "a + b", "f()", "@mov32(b, a)", "@activate(t)"):
        with pytest.raises(NotComptime):
            evaluate(parse_expression(Source("e.csl", text)), scope)
    assert evaluate(parse_expression(Source("e.csl", "b + 1")), scope) == values.integer(3)
    assert isinstance(evaluate(parse_expression(Source("e.csl", "&a")), scope), values.Address)


LAYOUT = """
param width: u16;
const red = @get_color(1);
layout {
  @set_rectangle(width, 2);
  for (@range(u16, width)) |x| {
    for (@range(u16, 2)) |y| {
      @set_tile_code(x, y, "pe.csl", .{ .is_left = x == 0 });
      const tx = if (x == width - 1) .{ RAMP } else .{ RAMP, EAST };
      const switches = .{ .pos1 = .{ .tx = EAST }, .ring_mode = true, .pop_mode = .{ .always_pop = true } };
      @set_color_config(x, y, red, .{
        .routes = .{ .rx = .{ if (x == 0) RAMP else WEST }, .tx = tx }, .switches = switches,
        .filter = .{ .kind = .{ .range = true }, .min_idx = x, .max_idx = x + 1 },
      });
    }
  }
  @export_name("a", [*]f32, true);
  @export_name("run", fn(u16)void);
}
"""


def test_functions_of_the_math_library() -> None:
    text = """
    const math = @import_module("<math>");
    const x = .{ math.floor(@as(f32, 2.5)), math.sqrt(@as(f32, 2.0)), math.max(@as(i16, 3), 5) };
    """
    found = value(text)
    assert isinstance(found, values.TupleValue)
    assert [e.value for e in found.elements] == [2.0, 1.4142135381698608, 5]  # type: ignore[attr-defined]


def test_a_layout(tmp_path: Path) -> None:
    found = layout(tmp_path, {"layout.csl": LAYOUT, "pe.csl": "param is_left: bool;"}, width=3)
    assert (found.width, found.height, len(found.tiles), len(found.programs)) == (3, 2, 6, 2)
    assert found.tiles[0, 1] == found.tiles[0, 0] != found.tiles[2, 1]
    config, span = found.colors[1, 1, 1]
    assert (config.rx, config.tx, span.line) == (("WEST",), ("RAMP", "EAST"), 11)
    assert config.switches is not None
    assert config.switches.positions[0] is not None
    assert (config.switches.positions[0].tx, config.switches.pop_mode) == (("EAST",), "always_pop")
    assert config.filter is not None
    assert (config.filter.get("min_idx"), config.filter.get("max_idx")) == (1, 2)
    assert [(e.name, str(e.type), e.is_mutable) for e in found.exports] == [
        ("a", "[*]f32", True),
        ("run", "fn(u16)void", False),
    ]


def test_routes_and_switches_as_bits(tmp_path: Path) -> None:
    """Bits 0-4 are outputs, 5-9 inputs, in the order west, east, south, north, ramp."""
    text = """
    layout { @set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl");
      @set_color_config(0, 0, @get_color(2), .{ .routes = 0x20 | 0x12, .switches = .{ .pos1 = 0x200 } }); }
    """
    found = layout(tmp_path, {"layout.csl": text, "pe.csl": ""})
    config, _ = found.colors[0, 0, 2]
    assert (config.rx, config.tx) == (("WEST",), ("EAST", "RAMP"))
    assert config.switches is not None
    assert config.switches.positions[0] is not None
    assert config.switches.positions[0].rx == ("RAMP",)


TILE = '@set_tile_code(0, 0, "pe.csl");'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", "csl-layout"),
        ("@set_rectangle(1, 1);", "csl-layout"),
        (f"{TILE}", "csl-layout"),
        ("@set_rectangle(@get_rectangle().width, 1);", "csl-rectangle"),
        (f"@set_rectangle(1, 1); @set_rectangle(1, 1); {TILE}", "csl-layout"),
        (f"@set_rectangle(0, 1); {TILE}", "csl-layout"),
        (f"@set_rectangle(1, 1); {TILE} {TILE}", "csl-layout"),
        ('@set_rectangle(1, 1); @set_tile_code(1, 0, "pe.csl");', "csl-layout"),
        ('@set_rectangle(1, 1); @set_tile_code(0, 0, "no.csl");', "csl-import"),
        ('@set_rectangle(1, 1); @set_tile_code(0, 0, "pe.csl", 3);', "csl-type"),
        (f"@set_rectangle(1, 1); {TILE} @set_color_config(0, 0, @get_color(1), .{{}});", "csl-color"),
        (f"@set_rectangle(1, 1); {TILE} @set_color_config(0, 0, 3, .{{ .routes = 0 }});", "csl-color"),
        (
            f"@set_rectangle(1, 1); {TILE} @set_color_config(0, 0, @get_color(27), .{{ .routes = 0 }});",
            "csl-color",
        ),
        (f'@set_rectangle(1, 1); {TILE} @export_name("a", [*]f32);', "csl-export"),
        (f'@set_rectangle(1, 1); {TILE} @export_name("a", [3]f32, true);', "csl-export"),
        (f"@set_rectangle(1, 1); {TILE} @bind_local_task(1, 2);", "csl-misplaced"),
    ],
)
def test_wrong_layouts(body: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(PolyloomError) as caught:
        layout(tmp_path, {"layout.csl": f"layout {{ {body} }}", "pe.csl": ""})
    (found,) = caught.value.diagnostics
    assert found.code == code, found
    assert found.span is not None
    assert found.helps


def test_a_file_without_a_layout_and_one_that_is_not_there(tmp_path: Path) -> None:
    for text in ("const a = 1;", "layout { @set_rectangle(1, 1); } layout {}"):
        with pytest.raises(PolyloomError, match="csl-layout"):
            layout(tmp_path, {"layout.csl": text})
    with pytest.raises(PolyloomError, match="csl-file"):
        layout(tmp_path / "no", {})
