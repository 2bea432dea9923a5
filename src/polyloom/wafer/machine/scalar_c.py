"""Scalar functions of the IR as C expressions, one rounding per operation.

The names of the helper functions are those of the simulator's ``pe.h``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from functools import cache

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    Constant,
    Convert,
    Expression,
    Iterator,
    ParameterValue,
    Read,
    Select,
    Unary,
    UnaryOp,
    walk,
)
from polyloom.ir.types import ElementType

C_TYPES = {
    ElementType.FLOAT16: "half",
    ElementType.FLOAT32: "float",
    ElementType.INT16: "int16_t",
    ElementType.INT32: "int32_t",
}
"""The C type of each element type that the machine has."""

_SUFFIX = {
    ElementType.FLOAT16: "h",
    ElementType.FLOAT32: "s",
    ElementType.INT16: "i16",
    ElementType.INT32: "i32",
}
_INFIX = {BinaryOp.ADD: "+", BinaryOp.SUBTRACT: "-", BinaryOp.MULTIPLY: "*"}
_FUNCTION = {
    BinaryOp.DIVIDE: "div",
    BinaryOp.POWER: "pow",
    BinaryOp.MAXIMUM: "max",
    BinaryOp.MINIMUM: "min",
}

_CONVERSION = {
    ElementType.FLOAT16: "to_half",
    ElementType.FLOAT32: "to_float",
    ElementType.INT16: "to_int16",
    ElementType.INT32: "to_int32",
}


def scalar_code(expression: Expression, reads: Mapping[int, str]) -> str:
    """Return the expression in C; ``reads[k]`` is the C text of read number k."""
    match expression:
        case Read(position=position):
            return reads[position]
        case Constant(value=value, type=element):
            return literal(value, element)
        case Iterator() | ParameterValue():
            raise NotImplementedError("the value of an iterator or parameter in wafer code")
        case Unary(op=op, operand=operand):
            return _unary(op, scalar_code(operand, reads), expression.type)
        case Convert(type=element, operand=operand):
            return f"{_CONVERSION[element]}({scalar_code(operand, reads)})"
        case Binary(op=op, left=left, right=right):
            return _binary(op, scalar_code(left, reads), scalar_code(right, reads), expression.type)
        case Compare(op=op, left=left, right=right):
            return f"({scalar_code(left, reads)} {op.value} {scalar_code(right, reads)})"
        case Select(condition=condition, then=then, otherwise=otherwise):
            parts = (scalar_code(part, reads) for part in (condition, then, otherwise))
            text = "({} ? {} : {})".format(*parts)
            return f"(int16_t){text}" if expression.type is ElementType.INT16 else text


def literal(value: float | int, element: ElementType) -> str:
    """Return a constant, rounded to its type, as a C literal of that type."""
    if element.is_float and math.isnan(value):
        return f"({C_TYPES[element]})NAN"
    if element.is_float and math.isinf(value):
        return f"({C_TYPES[element]}){'-' if value < 0 else ''}INFINITY"
    if element.is_float:
        rounded = float(element.dtype.type(value))
        text = f"{rounded!r}f" if _is_float32(rounded) else repr(rounded)
        return text if element is ElementType.FLOAT32 else f"({C_TYPES[element]}){text}"
    if value == -(2**31):
        return "INT32_MIN"
    return f"({C_TYPES[element]}){int(value)}" if element is ElementType.INT16 else str(int(value))


@cache
def function_names() -> frozenset[str]:
    """Return the names of all functions that scalar code may call."""
    functions = [*_FUNCTION.values(), *(op.value for op in UnaryOp), "neg"]
    typed = (f"{function}_{suffix}" for function in functions for suffix in _SUFFIX.values())
    return frozenset((*typed, *_CONVERSION.values()))


def _is_float32(value: float) -> bool:
    return bool(struct.unpack("f", struct.pack("f", value))[0] == value)


def _unary(op: UnaryOp, operand: str, element: ElementType) -> str:
    if op is UnaryOp.NEGATE:
        inner = f"({operand})" if operand.startswith("-") else operand  # `--` is another operator
        return f"({C_TYPES[element]})(-{inner})"
    return f"{op.value}_{_SUFFIX[element]}({operand})"


def _binary(op: BinaryOp, left: str, right: str, element: ElementType) -> str:
    if op in _INFIX:
        text = f"({left} {_INFIX[op]} {right})"
        narrow = element in (ElementType.FLOAT16, ElementType.INT16)
        return f"({C_TYPES[element]}){text}" if narrow else text
    return f"{_FUNCTION[op]}_{_SUFFIX[element]}({left}, {right})"


def scalar_operations(expression: Expression) -> tuple[int, int]:
    """Return how many simple operations and how many multiplications an expression takes.

    A division counts as 8 operations and any other function but abs, max, min as 32: estimates, there
    is no public figure.
    """
    simple = multiplications = 0
    for node in walk(expression):
        if isinstance(node, Binary) and node.op is BinaryOp.MULTIPLY:
            multiplications += 1
        elif not isinstance(node, Read | Constant):
            simple += _weight(node)
    return simple, multiplications


def _weight(node: Expression) -> int:
    if isinstance(node, Binary):
        return {BinaryOp.DIVIDE: 8, BinaryOp.POWER: 32}.get(node.op, 1)
    if isinstance(node, Unary):
        return 1 if node.op in (UnaryOp.NEGATE, UnaryOp.ABS) else 32
    return 1
