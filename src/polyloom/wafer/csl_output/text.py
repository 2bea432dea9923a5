"""Integer and scalar expressions in CSL. Integers are i16, floor division and minima are functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from polyloom.diagnostics import Unsupported, error
from polyloom.ir.expressions import (
    Binary,
    Compare,
    Constant,
    Convert,
    Expression,
    Read,
    Select,
    Unary,
)
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import IntExpression, Name, Number, Operation

TYPES = {
    ElementType.FLOAT16: "f16",
    ElementType.FLOAT32: "f32",
    ElementType.INT16: "i16",
    ElementType.INT32: "i32",
}
"""CSL's types of elements."""

TIMING = """\
const timer = @import_module("<time>");
var begin_stamp = @zeros([3]u16);  // when the launch began here
var begin_stamp_ptr: [*]u16 = &begin_stamp;
var end_stamp = @zeros([3]u16);  // when this PE had done its part
var end_stamp_ptr: [*]u16 = &end_stamp;

fn ended() void {
  timer.get_timestamp(&end_stamp);
  sys.unblock_cmd_stream();
}"""
"""What the program of a layer's PE has: how long it took."""

BEGAN = ("timer.enable_tsc();", "timer.get_timestamp(&begin_stamp);")
"""What a launch begins with."""

STAMPS = ("begin_stamp", "end_stamp")
"""Time stamps that the host reads: three words of 16 bits, the low one first."""

_TRUTHS = frozenset(("<", "<=", ">", ">=", "==", "!=", "and", "or", "not"))
_CALLS = {"floor": "floor_div", "min": "min_i16", "max": "max_i16"}
FUNCTIONS = {
    "floor_div": """\
fn floor_div(a: i16, comptime b: i16) i16 {
  return if (a >= 0) a / b else -((b - 1 - a) / b);
}""",
    "min_i16": """\
fn min_i16(a: i16, b: i16) i16 {
  return if (a < b) a else b;
}""",
    "max_i16": """\
fn max_i16(a: i16, b: i16) i16 {
  return if (a > b) a else b;
}""",
}
"""What integer expressions call, where a file calls it."""

_OF_MATH = frozenset(
    [
        "exp",
        "log",
        "sqrt",
        "tanh",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "exp2",
        "log2",
        "log10",
        "floor",
        "ceil",
    ]
)
_HELPERS = {
    "sigmoid": "1.0 / (1.0 + math.exp(-x))",
    "rsqrt": "1.0 / math.sqrt(x)",
    "abs": "if (x < 0.0) -x else x",
}


def integer(expression: IntExpression) -> str:
    """Return an integer expression, in brackets where it is more than a name or a number."""
    match expression:
        case Number(value=value):
            return str(value) if value >= 0 else f"({value})"
        case Name(name=name):
            return name
        case Operation(operator="-", operands=(a,)):
            return f"(-{integer(a)})"
        case Operation(operator="?", operands=(condition, then, otherwise)):
            return f"(if {condition_text(condition)} {integer(then)} else {integer(otherwise)})"
        case Operation(operator="floor" | "/" | "%" as operator, operands=(a, Number(value=by))) if (
            by > 0 and by.bit_count() == 1
        ):
            return (
                f"({integer(a)} & {by - 1})"
                if operator == "%"
                else f"({integer(a)} >> {by.bit_length() - 1})"
            )
        case Operation(operator=operator, operands=operands):
            if operator in _CALLS:
                return reduce(lambda a, b: f"{_CALLS[operator]}({a}, {b})", map(integer, operands))
            sides = (
                [condition_text(o) for o in operands] if operator in ("and", "or") else map(integer, operands)
            )
            return f"({f' {operator} '.join(sides)})"


def condition_text(expression: IntExpression) -> str:
    """Return a condition in brackets; an integer is one where it is not 0."""
    if isinstance(expression, Operation) and expression.operator in _TRUTHS:
        return integer(expression)
    return f"({integer(expression)} != 0)"


def bare(text: str) -> str:
    """Return a text without brackets around the whole of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and k + 1 < len(text):
            return text
    return text[1:-1]


def scalar(expression: Expression, reads: Mapping[int, str]) -> str:
    """Return a scalar expression; ``reads[k]`` is the text of read number k. Errors: ``csl-function``."""
    match expression:
        case Read(position=position):
            return reads[position]
        case Constant(value=value, type=element):
            return literal(value, element)
        case Unary(op=op, operand=operand):
            return _call(op.name, [scalar(operand, reads)], expression.type)
        case Binary(op=op, left=left, right=right):
            return _call(op.name, [scalar(left, reads), scalar(right, reads)], expression.type)
        case Convert(type=element, operand=operand):
            return f"@as({TYPES[element]}, {bare(scalar(operand, reads))})"
        case Compare(op=op, left=left, right=right):
            return f"({scalar(left, reads)} {op.value} {scalar(right, reads)})"
        case Select(condition=condition, then=then, otherwise=otherwise):
            parts = [scalar(part, reads) for part in (condition, then, otherwise)]
            return "(if {} {} else {})".format(*parts)
        case _:
            raise Unsupported(error("csl-function", "the value of an iterator is no value of a PE's program"))


def literal(value: float | int, element: ElementType) -> str:
    """Return a constant of a type; infinities and NaN by their bits, since CSL has no literals for them."""
    kind = TYPES[element]
    if not element.is_float:
        return f"@as({kind}, {int(value)})"
    if not math.isfinite(value):
        word = np.array(value, element.dtype).tobytes()
        return f"@bitcast({kind}, @as(u{8 * element.size}, 0x{int.from_bytes(word, 'little'):x}))"
    return f"@as({kind}, {float(element.dtype.type(value))!r})"


def _call(op: str, operands: Sequence[str], element: ElementType) -> str:
    kind = TYPES[element]
    if op in ("+", "-", "*", "/") and (element.is_float or op != "/"):
        return f"(-{operands[0]})" if len(operands) == 1 else f"({f' {op} '.join(operands)})"
    if op in ("max", "min", *_HELPERS) and (element.is_float or op in ("max", "min", "abs")):
        return f"{op}_{kind}({', '.join(map(bare, operands))})"
    if op in _OF_MATH and element.is_float:
        return f"math.{op}_{kind}({bare(operands[0])})"
    helps = ["the layer runs on our simulator all the same: `--target wafer`"]
    raise Unsupported(error("csl-function", f"`{op}` has no CSL here", helps=helps))


def helper(name: str) -> str | None:
    """Return the definition of a scalar helper such as ``max_f16``; None where it is none."""
    function, _, kind = name.rpartition("_")
    if kind not in TYPES.values():
        return None
    if function in ("max", "min") and kind != "i16":
        sign = ">" if function == "max" else "<"
        return f"fn {name}(a: {kind}, b: {kind}) {kind} {{\n  return if (a {sign} b or a != a) a else b;\n}}"
    if function in _HELPERS:
        zero = "0.0" if kind.startswith("f") else "0"
        body = (
            _HELPERS[function]
            .replace("math.exp", f"math.exp_{kind}")
            .replace("math.sqrt", f"math.sqrt_{kind}")
        )
        return f"fn {name}(x: {kind}) {kind} {{\n  return {body.replace('x < 0.0', f'x < {zero}')};\n}}"
    return None


def cannot(what: str) -> Unsupported:
    """Return the refusal of what CSL could say and this printer does not yet."""
    helps = ["the layer runs on our simulator all the same: `--target wafer`"]
    return Unsupported(error("csl-form", f"no CSL is printed for this yet: {what}", helps=helps))
