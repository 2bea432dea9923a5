"""Scalar functions of the IR as C expressions, one rounding per operation.

The names of the helper functions are those of the simulator's ``pe.h``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    Constant,
    Convert,
    Expression,
    Iterator,
    Local,
    ParameterValue,
    Procedure,
    Read,
    Select,
    Unary,
    walk,
)
from polyloom.ir.scalar_functions.function import (
    BINARY,
    UNARY,
    OnWafer,
    ScalarFunction,
)
from polyloom.ir.scalar_functions.spelling import Defined, Infix, Prefix
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
        case Iterator() | ParameterValue() | Local() | Procedure():
            raise NotImplementedError("no layer has these: values of iterators, parameters, variables")
        case Unary(op=op, operand=operand):
            return _function(op, [scalar_code(operand, reads)], expression.type)
        case Convert(type=element, operand=operand):
            return f"{_CONVERSION[element]}({scalar_code(operand, reads)})"
        case Binary(op=op, left=left, right=right):
            return _function(op, [scalar_code(left, reads), scalar_code(right, reads)], expression.type)
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


def function_names() -> frozenset[str]:
    """Return the names of all functions that scalar code may call."""
    return _names_of(tuple(row.function for row in _defined()))


@lru_cache(maxsize=4)
def _names_of(functions: tuple[str, ...]) -> frozenset[str]:
    typed = (f"{function}_{suffix}" for function in functions for suffix in _SUFFIX.values())
    return frozenset((*typed, *_CONVERSION.values()))


def function_table() -> str:
    """Return the C functions of the table of scalar functions, as the macros of a header, one line each."""
    floats = [_definition(row, row.floats) for row in _defined() if row.floats is not None]
    integers = [_definition(row, row.integers) for row in _defined() if row.integers is not None]
    return "".join(
        f"#define PE_FUNCTIONS_OF_{kind}(type, suffix)" + "".join(f" \\\n  {line}" for line in lines) + "\n"
        for kind, lines in (("FLOATS", floats), ("INTEGERS", integers))
    )


def _definition(row: Defined, body: str) -> str:
    parameters = ", ".join(f"type {name}" for name in row.arguments)
    return f"static inline type {row.function}_##suffix({parameters}) {{ return (type)({body}); }}"


def _defined() -> list[Defined]:
    rows = [*(row.wafer for row in UNARY.values()), *(row.wafer for row in BINARY.values())]
    return [r.spelling for r in rows if r is not None and isinstance(r.spelling, Defined)]


def _is_float32(value: float) -> bool:
    return bool(struct.unpack("f", struct.pack("f", value))[0] == value)


def _function(op: ScalarFunction[Any], operands: Sequence[str], element: ElementType) -> str:
    match _on_wafer(op).spelling:
        case Defined(function=function):
            return f"{function}_{_SUFFIX[element]}({', '.join(operands)})"
        case Prefix(sign=sign):
            (operand,) = operands
            inner = f"({operand})" if operand.startswith(sign) else operand  # `--` is another operator
            return f"({C_TYPES[element]})({sign}{inner})"
        case Infix(sign=sign):
            text = f"({f' {sign} '.join(operands)})"
            narrow = element in (ElementType.FLOAT16, ElementType.INT16)
            return f"({C_TYPES[element]}){text}" if narrow else text


def _on_wafer(op: ScalarFunction[Any]) -> OnWafer:
    if op.wafer is None:
        raise NotImplementedError(f"{op.name} in wafer code")
    return op.wafer


def scalar_operations(expression: Expression) -> tuple[int, int]:
    """Return how many simple operations and how many multiplications an expression takes.

    Those of a function stand in the table, ``ir/scalar_functions``: estimates, there is no public figure.
    """
    simple = multiplications = 0
    for node in walk(expression):
        if isinstance(node, Binary) and node.op is BinaryOp.MULTIPLY:
            multiplications += 1
        elif not isinstance(node, Read | Constant):
            simple += _weight(node)
    return simple, multiplications


def _weight(node: Expression) -> int:
    return _on_wafer(node.op).operations if isinstance(node, Unary | Binary) else 1
