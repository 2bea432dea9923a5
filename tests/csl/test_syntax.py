"""The reader of CSL: trees of right programs, one diagnostic for a wrong one."""

from __future__ import annotations

import pytest

from polyloom.csl.syntax import parse, parse_expression, tree
from polyloom.diagnostics import PolyloomError, Source


def expression(text: str) -> tree.Expression:
    """Return the tree of an expression."""
    return parse_expression(Source("e.csl", text))


def shown(node: object) -> str:
    """Return an expression with parentheses around every operation."""
    match node:
        case tree.Binary():
            return f"({shown(node.left)} {node.operator} {shown(node.right)})"
        case tree.Unary():
            return f"({node.operator}{shown(node.operand)})"
        case tree.Index():
            return f"{shown(node.base)}[{', '.join(map(shown, node.indices))}]"
        case tree.Field():
            return f"{shown(node.base)}.{node.name}"
        case tree.Dereference():
            return f"{shown(node.base)}.*"
        case tree.Call():
            return f"{shown(node.callee)}({', '.join(map(shown, node.arguments))})"
        case tree.Expression():
            return node.span.text
        case _:
            raise AssertionError(node)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a & 1 == 0", "((a & 1) == 0)"),
        ("a << 1 + b", "(a << (1 + b))"),
        ("a | b << 2", "(a | (b << 2))"),
        ("a < b and c or d == e", "(((a < b) and c) or (d == e))"),
        ("!a and b", "((!a) and b)"),
        ("-a.b[i, j].*", "(-a.b[i, j].*)"),
        ("&f(x)[0]", "(&f(x)[0])"),
        ("(a + b) * c", "((a + b) * c)"),
    ],
)
def test_precedence(text: str, expected: str) -> None:
    assert shown(expression(text)) == expected


def test_literals_and_their_values() -> None:
    assert [expression(t).value for t in ("0xff", "0b101", "0o17", "1_000", "1.5e3", '"a\\n\\x41"')] == [  # type: ignore[attr-defined]
        255,
        5,
        15,
        1000,
        1500.0,
        "a\nA",
    ]


def test_spans_are_those_of_the_text() -> None:
    found = expression("f(a, .{ .x = 1 + 2 }) * 3")
    assert isinstance(found, tree.Binary)
    assert isinstance(found.left, tree.Call)
    (_, literal) = found.left.arguments
    assert literal.span.text == ".{ .x = 1 + 2 }"
    assert isinstance(literal, tree.StructLiteral)
    assert literal.fields[0].value.span.text == "1 + 2"


FILE = """
// a comment with "quotes" and { braces
param n: u16 = 4;
export var A: [2, n]f32 align(16) = @zeros([2, n]f32);
const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> A[1, i + 1] });
const id = if (@is_arch("wse3")) @get_local_task_id(8) else @get_local_task_id(0);
const Pair = struct { first: u16, second: *const [n]f32, };
const mode = enum(u16) { send = 0, receive };
extern fn there(a: u16) void;
fn max(comptime T: type, a: T, b: T) T { return if (a > b) a else b; }
fn pair() Pair { return Pair{ .first = 1, .second = &A }; }
task t(x: f16, i: u16) void {
  var k: i16 = 0;
  outer: while (k < 3) : (k += 1) { if (k == 2) break :outer else continue; }
  for (@range(u16, n)) |j, at| A[0, j] = 1.0;
  switch (k) { 0, 1 => k = 2, 3 => { return; }, else => @activate(id) }
  if (k == 0) @block(id) else if (k == 1) { k <<= 2; }
  const v = blk: { break :blk k + 1; };
  comptime var c = [_]u16{ 1, 2 };
  comptime { c[0] = 3; }
}
comptime { @bind_local_task(t, id); }
layout { @set_rectangle(1, 1); }
"""


def test_everything_at_the_top_of_a_file() -> None:
    found = parse(Source("f.csl", FILE.replace("[_]", "[2]")))
    kinds = [type(i).__name__ for i in found.items]
    assert kinds == [*["Declaration"] * 6, *["Function"] * 4, "ComptimeBlock", "LayoutBlock"]
    task = found.items[9]
    assert isinstance(task, tree.Function)
    assert task.body is not None
    names = [type(s).__name__ for s in task.body.body]
    assert names == [
        *("Declaration", "While", "For", "ExpressionStatement", "If"),
        *("Declaration", "Declaration", "Block"),
    ]


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("const a = 1", "csl-syntax", (1, 12)),
        ("const a = $;", "csl-character", (1, 11)),
        ("# include <math.h>", "csl-character", (1, 1)),
        ('const a = "b;\n', "csl-string", (1, 11)),
        ('const a = "\\q";', "csl-string", (1, 11)),
        ("const a = 12ab;", "csl-number", (1, 11)),
        ("const a = 0x;", "csl-number", (1, 11)),
        (f"const a = {'9' * 500};", "csl-number", (1, 11)),
        ("const var = 1;", "csl-keyword", (1, 7)),
        ("const a = 1 < 2 < 3;", "csl-chain", (1, 17)),
        ("fn f() void { x++; }", "csl-syntax", (1, 17)),
        ("fn f() void {", "csl-syntax", (1, 14)),
        ("x = 1;", "csl-syntax", (1, 1)),
        ("fn f(a) void {}", "csl-syntax", (1, 7)),
        ("const a = .{ .b = 1, 2 };", "csl-syntax", (1, 22)),
        ("const a = " + "(" * 200 + "1;", "csl-too-deep", (1, 71)),
        ("fn f() void {" * 3, "csl-syntax", (1, 17)),
    ],
)
def test_one_diagnostic_with_its_place(text: str, code: str, place: tuple[int, int]) -> None:
    with pytest.raises(PolyloomError) as caught:
        parse(Source("w.csl", text))
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert found.span is not None
    assert (found.span.line, found.span.column) == place
    assert found.helps


def test_a_c_file_is_told_from_a_comment_of_another_language() -> None:
    helps = []
    for text in ("#define N 3", "# of PEs"):
        with pytest.raises(PolyloomError) as caught:
            parse(Source("w.csl", text))
        helps += caught.value.diagnostics[0].helps
    assert ["polyloom run" in text for text in helps] == [True, False]
