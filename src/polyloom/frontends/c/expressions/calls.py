"""Calls of functions inside expressions: of ``math.h``, ``min``, ``max``, short functions of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pycparser import c_ast

from polyloom.frontends.c.expressions.bits import function_of_bits
from polyloom.frontends.c.scope.conversions import comparison, converted, negated, operation
from polyloom.frontends.c.scope.functions import (
    AFFINE_FUNCTIONS,
    EXTREMA,
    SPECIAL,
    binary_function,
    parameters_of,
    unary_function,
)
from polyloom.frontends.c.scope.names import Defined
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.syntax.faults import fail
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

_CONSTANTS = {
    "__builtin_inf": Constant(float("inf"), ElementType.FLOAT64),
    "__builtin_inff": Constant(float("inf"), ElementType.FLOAT32),
    "__builtin_nan": Constant(float("nan"), ElementType.FLOAT64),
    "__builtin_nanf": Constant(float("nan"), ElementType.FLOAT32),
}

Evaluate = Callable[[c_ast.Node, State], Expression]


def known_call(node: c_ast.FuncCall, state: State, value: Evaluate) -> Expression | None:
    """Return the value of a call of a function that Polyloom knows; None where it does not know it."""
    name = node.name.name if isinstance(node.name, c_ast.ID) else ""
    arguments = list(node.args.exprs) if node.args is not None else []
    if name == "__builtin_tgmath":
        return _of_any_type(arguments, node, state, value)
    is_builtin = name.startswith("__builtin_")
    name = name if name in _CONSTANTS else name.removeprefix("__builtin_")
    plain = name if _is_mathematical(name) else name.removesuffix("f")
    if name in ("abs", "labs") and len(arguments) == 1:
        element = ElementType.INT32 if name == "abs" else ElementType.INT64
        return Unary(UnaryOp.ABS, converted(value(arguments[0], state), element))
    bits = function_of_bits(name) if is_builtin and len(arguments) == 1 else None
    if bits is not None:
        return bits(value(arguments[0], state))
    if name in EXTREMA and len(arguments) == 2:
        return operation(EXTREMA[name], value(arguments[0], state), value(arguments[1], state))
    if name in AFFINE_FUNCTIONS and len(arguments) == 2:
        return _quotient(name, value(arguments[0], state), value(arguments[1], state))
    if name in _CONSTANTS and len(arguments) <= 1:
        return _CONSTANTS[name]
    if _is_mathematical(plain):
        element = ElementType.FLOAT64 if plain == name else ElementType.FLOAT32
        return _mathematical(plain, element, [value(a, state) for a in arguments], node, state)
    return None


def _is_mathematical(name: str) -> bool:
    return name in SPECIAL or unary_function(name) is not None or binary_function(name) is not None


def _of_any_type(
    nodes: list[c_ast.Node], node: c_ast.FuncCall, state: State, value: Evaluate
) -> Expression | None:
    """Return a call of ``tgmath.h``: ``__builtin_tgmath(sqrtf, sqrt, sqrtl, x)``. Source: ISO C99, 7.22."""
    spelled = (n.name for n in nodes if isinstance(n, c_ast.ID))
    names = [n for n in spelled if any(map(_is_mathematical, (n, n.removesuffix("f"), n.removesuffix("l"))))]
    if len(names) < 2 or not _is_mathematical(names[1]):
        return None
    wanted = 1 if unary_function(names[1]) or names[1] == "round" else 3 if names[1] == "fma" else 2
    arguments = [value(n, state) for n in nodes[-wanted:]]
    kinds = {a.type if a.type.is_float else ElementType.FLOAT64 for a in arguments}
    element = ElementType.FLOAT64 if ElementType.FLOAT64 in kinds else ElementType.FLOAT32
    return _mathematical(names[1], element, arguments, node, state)


def _quotient(name: str, first: Expression, second: Expression) -> Expression:
    """Return ``floord``, ``ceild`` or ``intMod`` of integers, whatever their signs."""
    if name in ("ceild", "intCeil"):
        return negated(_quotient("floord", negated(first), second))
    quotient, rest = operation(BinaryOp.DIVIDE, first, second), operation(BinaryOp.REMAINDER, first, second)
    zero = Constant(0, rest.type)
    signs = comparison(CompareOp.LT, operation(BinaryOp.BIT_XOR, rest, second), zero)
    below = Binary(BinaryOp.AND, comparison(CompareOp.NE, rest, zero), signs)
    if name == "intMod":
        return Select(below, operation(BinaryOp.ADD, rest, second), rest)
    one = Constant(1, quotient.type)
    return Select(below, Binary(BinaryOp.SUBTRACT, quotient, one), quotient)


def _mathematical(
    name: str, element: ElementType, arguments: list[Expression], node: c_ast.FuncCall, state: State
) -> Expression:
    unary, binary = unary_function(name), binary_function(name)
    wanted = 1 if unary or name in ("round", "isnan") else 3 if name == "fma" else 2
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
    if unary is not None:
        return Unary(unary, operands[0])
    if binary is not None:
        return Binary(binary, operands[0], operands[1])
    if name == "fma":
        state.fused.append(state.span(node))
    return _special(name, operands)


def _special(name: str, operands: list[Expression]) -> Expression:
    """``round``: halves away from zero; ``fdim``: the positive difference; ``fma``: rounded twice here."""
    first = operands[0]
    zero, one = Constant(0, first.type), Constant(1, first.type)
    if name == "fdim":
        difference = Binary(BinaryOp.SUBTRACT, first, operands[1])
        return Select(comparison(CompareOp.LE, first, operands[1]), zero, difference)
    if name == "fma":
        return Binary(BinaryOp.ADD, Binary(BinaryOp.MULTIPLY, first, operands[1]), operands[2])
    down = Unary(UnaryOp.TRUNC, first)
    rest = Unary(UnaryOp.ABS, Binary(BinaryOp.SUBTRACT, first, down))
    away = Select(comparison(CompareOp.LT, first, zero), Constant(-1, first.type), one)
    half = Constant(0.5, first.type)
    return Select(comparison(CompareOp.GE, rest, half), Binary(BinaryOp.ADD, down, away), down)


def passed(found: Defined, node: c_ast.FuncCall, state: State) -> Iterator[tuple[c_ast.Decl, c_ast.Node]]:
    """Return each parameter of a function of the file with its argument. Error: ``c-call``."""
    arguments = list(node.args.exprs) if node.args is not None else []
    parameters = parameters_of(found)
    if len(arguments) != len(parameters):
        fail(
            "c-call",
            f"`{found.name}` takes {len(parameters)} arguments, not {len(arguments)}",
            state.span(node),
            helps=[f"it is declared as `{state.text(found.body.decl if found.body else node)}`"],
        )
    return zip(parameters, arguments, strict=True)
