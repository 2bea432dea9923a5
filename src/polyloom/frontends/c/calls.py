"""Calls of functions inside expressions: of ``math.h``, of ``min`` and ``max``, of the file's own short functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from pycparser import c_ast

from polyloom.frontends.c.convert import comparison, converted, operation
from polyloom.frontends.c.faults import fail, refuse
from polyloom.frontends.c.functions import BINARY, EXTREMA, SPECIAL, UNARY
from polyloom.frontends.c.state import Defined, State
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    CompareOp,
    Constant,
    Expression,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.types import ElementType

Evaluate = Callable[[c_ast.Node, State], Expression]


def call_value(node: c_ast.FuncCall, state: State, value: Evaluate) -> Expression:
    """Return the value of a call. Errors: ``c-call`` for functions that Polyloom does not know."""
    name = node.name.name if isinstance(node.name, c_ast.ID) else ""
    arguments = list(node.args.exprs) if node.args is not None else []
    found = state.scope.find(name)
    if isinstance(found, Defined) and found.body is not None:
        refuse_long(found, node, state)
    plain = name.removesuffix("f") if name not in (*UNARY, *BINARY, *SPECIAL, "erf") else name
    if name in ("abs", "labs") and len(arguments) == 1:
        element = ElementType.INT32 if name == "abs" else ElementType.INT64
        return Unary(UnaryOp.ABS, converted(value(arguments[0], state), element))
    if name in EXTREMA and len(arguments) == 2:
        return operation(EXTREMA[name], value(arguments[0], state), value(arguments[1], state))
    if plain in UNARY or plain in BINARY or plain in SPECIAL:
        element = ElementType.FLOAT64 if plain == name else ElementType.FLOAT32
        return _mathematical(plain, element, [value(a, state) for a in arguments], node, state)
    return _refuse(node, state)


def _refuse(node: c_ast.FuncCall, state: State) -> Expression:
    name = state.text(node.name)
    return refuse(
        "c-call",
        f"`{name}` is a function that Polyloom does not know",
        state.span(node),
        notes=["what it reads and writes cannot be seen"],
        helps=[
            "define it in this file, so that it can be inlined; known are "
            f"{', '.join([*UNARY, *BINARY, *SPECIAL, 'abs', 'min', 'max'])}"
        ],
    )


def _mathematical(
    name: str, element: ElementType, arguments: list[Expression], node: c_ast.FuncCall, state: State
) -> Expression:
    wanted = 1 if name in UNARY or name in ("round", "isnan") else 3 if name == "fma" else 2
    if len(arguments) != wanted:
        fail(
            "c-call",
            f"`{name}` takes {wanted} arguments, not {len(arguments)}",
            state.span(node),
            helps=["see math.h"],
        )
    if name == "isnan":
        return converted(comparison(CompareOp.NE, arguments[0], arguments[0]), ElementType.INT32)
    operands = [converted(a, element) for a in arguments]
    if name in UNARY:
        return Unary(UNARY[name], operands[0])
    if name in BINARY:
        return Binary(BINARY[name], operands[0], operands[1])
    return _special(name, operands)


def _special(name: str, operands: list[Expression]) -> Expression:
    """``round``: halves away from zero; ``fdim``: the positive difference; ``fma``: rounded twice here."""
    first = operands[0]
    zero, one = Constant(0, first.type), Constant(1, first.type)
    if name == "fdim":
        difference = Binary(BinaryOp.SUBTRACT, first, operands[1])
        return Select(comparison(CompareOp.GT, first, operands[1]), difference, zero)
    if name == "fma":
        return Binary(BinaryOp.ADD, Binary(BinaryOp.MULTIPLY, first, operands[1]), operands[2])
    down = Unary(UnaryOp.TRUNC, first)
    rest = Unary(UnaryOp.ABS, Binary(BinaryOp.SUBTRACT, first, down))
    away = Select(comparison(CompareOp.LT, first, zero), Constant(-1, first.type), one)
    half = Constant(0.5, first.type)
    return Select(comparison(CompareOp.GE, rest, half), Binary(BinaryOp.ADD, down, away), down)


def refuse_long(found: Defined, node: c_ast.FuncCall, state: State) -> NoReturn:
    """Refuse a function with statements where an expression is wanted."""
    refuse(
        "c-call",
        f"`{found.name}` is called inside an expression and is more than one `return`",
        state.span(node),
        helps=["assign its result to a variable first, or make it one expression"],
    )
