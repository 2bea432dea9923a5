"""Constants of C. Source: ISO C99, 6.4.4."""

from __future__ import annotations

import re

from pycparser import c_ast

from polyloom.frontends.c.scope.conversions import constant_as, wrapped
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import value_range
from polyloom.frontends.c.syntax.faults import NotAffine, refuse
from polyloom.frontends.c.syntax.nodes import value_and_suffix
from polyloom.ir.expressions import Constant
from polyloom.ir.types import ElementType

_E = ElementType
_ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, "'": 39, '"': 34, "a": 7, "b": 8, "f": 12, "v": 11}


def integer_literal(node: c_ast.Constant, state: State) -> tuple[int, ElementType]:
    """Return an integer's value and type. Errors: ``NotAffine`` for floats and strings."""
    if node.type == "char" or "'" in node.value:
        return _character(node, state), _E.INT32
    if "int" not in node.type:
        raise NotAffine(state.span(node), f"`{node.value}` is no integer")
    value, suffix = value_and_suffix(node)
    return value, _integer_type(value, suffix, decimal=not node.value.startswith("0"))


def _integer_type(value: int, suffix: str, *, decimal: bool) -> ElementType:
    candidates = [_E.INT32, _E.UINT32, _E.INT64, _E.UINT64]
    if "u" in suffix:
        candidates = [_E.UINT32, _E.UINT64]
    elif decimal:
        candidates = [_E.INT32, _E.INT64]
    if "l" in suffix:
        candidates = [c for c in candidates if c.size == 8]
    fitting = (c for c in candidates if value <= value_range(c)[1])
    return next(fitting, _E.UINT64)


def _character(node: c_ast.Constant, state: State) -> int:
    text = node.value[1:-1]
    if len(text) == 1 and text.isascii():
        return ord(text)
    if text[:1] == "\\" and text[1:] in _ESCAPES:
        return _ESCAPES[text[1:]]
    if re.fullmatch(r"\\x[0-9a-fA-F]+", text):
        return wrapped(int(text[2:], 16), _E.INT8)
    if re.fullmatch(r"\\[0-7]+", text):
        return wrapped(int(text[1:], 8), _E.INT8)
    raise NotAffine(state.span(node), f"`{node.value}` is no plain character")


def _floating(text: str) -> Constant:
    """Return the value that the literal's type holds: 0.3f beside a double is 0.30000001192092896."""
    digits = text[:-1] if text[-1] in "fF" else text
    value = float.fromhex(digits) if digits.lower().startswith("0x") else float(digits)
    number = Constant(value, _E.FLOAT64)
    return constant_as(number, _E.FLOAT32) if text[-1] in "fF" else number


def is_floating(node: c_ast.Constant) -> bool:
    """Whether a constant is one of ``float``, ``double`` or ``long double``."""
    return node.type in ("float", "double", "long double")


def is_long_double(node: c_ast.Constant) -> bool:
    """Whether a constant has more digits than a ``double``: ``0.1L``."""
    return is_floating(node) and node.value[-1] in "lL"


def literal(node: c_ast.Constant, state: State) -> Constant:
    """Return a constant as an expression.

    Errors: ``c-literal`` for strings, ``c-type`` for ``long double``.
    """
    if is_long_double(node):
        refuse(
            "c-type",
            f"`{node.value}` is a `long double`, which is no type that Polyloom computes with",
            state.span(node),
            helps=[f"`{node.value[:-1]}` is a `double`"],
        )
    if is_floating(node):
        return _floating(node.value)
    try:
        value, element = integer_literal(node, state)
    except NotAffine as fault:
        refuse("c-literal", fault.reason, fault.span, helps=["a SCoP computes with numbers"])
    return Constant(value, element)
