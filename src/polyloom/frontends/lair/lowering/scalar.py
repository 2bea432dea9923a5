"""Scalar expressions of statements: types, literals, reads.

Operands have one type; literals and size parameters take it; conversions are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyloom.frontends.lair.lowering.faults import fail
from polyloom.frontends.lair.lowering.literals import literal
from polyloom.frontends.lair.lowering.names import (
    TYPES,
    binary_functions,
    counted,
    functions,
    suggestion,
    unary_functions,
)
from polyloom.frontends.lair.syntax.tree import (
    Call,
    Choice,
    Element,
    Expression,
    Name,
    Number,
    Operation,
    walk,
)
from polyloom.ir import expressions as ir
from polyloom.ir.host import Buffer
from polyloom.ir.scalar_functions.function import ScalarFunction
from polyloom.ir.types import ElementType

_COMPARISONS = {op.value: op for op in ir.CompareOp}
_ARITHMETIC = {
    "+": ir.BinaryOp.ADD,
    "-": ir.BinaryOp.SUBTRACT,
    "*": ir.BinaryOp.MULTIPLY,
    "/": ir.BinaryOp.DIVIDE,
}


@dataclass(frozen=True)
class Values:
    """What an expression may speak of: tensors, each with the number of its read; types; size parameters."""

    tensors: Mapping[str, Buffer]
    positions: Mapping[str, int]
    types: Mapping[str, ElementType]
    sizes: Mapping[str, int]

    def type_named(self, name: str) -> ElementType | None:
        """Return the type that a name stands for, None where it is no type."""
        return self.types.get(name) or TYPES.get(name)


def lower_expression(expression: Expression, output: ElementType | None, values: Values) -> ir.Expression:
    """Return the expression in the IR, of the type ``output`` (None: of its own type).

    Errors: ``lair-type-mismatch``, ``lair-literal``, ``lair-comparison``, ``lair-condition``,
    ``lair-unknown-function``, ``lair-function-arguments``.
    """
    return _Lowering(values, _own_types(expression, values)).typed(expression, output)


_Types = dict[int, ElementType | None]


def _own_types(expression: Expression, values: Values) -> _Types:
    """Return the type of every part, by its identity, as far as its leaves tell."""
    types: _Types = {}
    for part in reversed(list(walk(expression))):
        types[id(part)] = _own_type(part, values, types)
    return types


def _own_type(part: Expression, values: Values, types: _Types) -> ElementType | None:
    match part:
        case Name(text=name) | Element(tensor=Name(text=name)):
            return values.tensors[name].type if name in values.tensors else None
        case Operation(operator=sign) if sign in _COMPARISONS:
            return ElementType.BOOL
        case Call(function=Name(text=name)) if kind := values.type_named(name):
            return kind
        case Call(function=Name(text="select"), arguments=(_, *sides)) | Operation(operands=[*sides]):
            return _first_type(sides, types)
        case Call(arguments=sides):
            return _first_type(sides, types)
        case Choice(then=a, otherwise=b):
            return _first_type((a, b), types)
        case Number():
            return None


def _first_type(parts: tuple[Expression, ...] | list[Expression], types: _Types) -> ElementType | None:
    return next((types[id(p)] for p in parts if types[id(p)] is not None), None)


@dataclass(frozen=True)
class _Lowering:
    values: Values
    types: _Types

    def typed(self, part: Expression, wanted: ElementType | None) -> ir.Expression:
        """Lower a part that must have the type ``wanted`` (None: any that its leaves tell)."""
        kind = self.types[id(part)] or wanted
        if kind is None:
            return self._refuse_untyped(part)
        if kind is ElementType.BOOL:
            return _refuse_comparison(part)
        if wanted is not None and kind is not wanted:
            return _refuse_mismatch(part, kind, wanted)
        return self._lower(part, kind)

    def _lower(self, part: Expression, kind: ElementType) -> ir.Expression:
        match part:
            case Number(value=value):
                return literal(value, kind, part.span)
            case Name() | Element():
                return self._read(part, kind)
            case Operation(operator="-", operands=(Number(value=value),)):
                return literal(-value or -0.0 if kind.is_float else -value, kind, part.span)
            case Operation(operator="-", operands=(a,)):
                return ir.Unary(ir.UnaryOp.NEGATE, self.typed(a, kind))
            case Operation():
                return self._arithmetic(part, kind)
            case Choice(condition=c, then=a, otherwise=b):
                return ir.Select(self._condition(c), self.typed(a, kind), self.typed(b, kind))
            case Call():
                return self._call(part, kind)

    def _read(self, part: Name | Element, kind: ElementType) -> ir.Expression:
        name = part.text if isinstance(part, Name) else part.tensor.text
        if name in self.values.positions:
            return ir.Read(self.values.positions[name], kind)
        return literal(self.values.sizes[name], kind, part.span)

    def _arithmetic(self, part: Operation, kind: ElementType) -> ir.Expression:
        if part.operator not in _ARITHMETIC:
            fail(
                "lair-operator",
                f"`{part.operator}` works on sizes only, not on data",
                part.span,
                help="write `a - b * floor(a / b)` if that is meant",
            )
        left, right = part.operands
        return ir.Binary(_ARITHMETIC[part.operator], self.typed(left, kind), self.typed(right, kind))

    def _condition(self, part: Expression) -> ir.Expression:
        if not isinstance(part, Operation) or part.operator not in _COMPARISONS:
            return _refuse_condition(part)
        kind = _first_type(part.operands, self.types)
        left, right = (self.typed(p, kind) for p in part.operands)
        return ir.Compare(_COMPARISONS[part.operator], left, right)

    def _call(self, part: Call, kind: ElementType) -> ir.Expression:
        name = part.function.text
        if self.values.type_named(name):
            return self._conversion(part, kind)
        if unary := unary_functions().get(name):
            _check_function(part, 1, unary, kind)
            return ir.Unary(unary, self.typed(part.arguments[0], kind))
        if binary := binary_functions().get(name):
            _check_function(part, 2, binary, kind)
            left, right = (self.typed(a, kind) for a in part.arguments)
            return ir.Binary(binary, left, right)
        if name == "select":
            _check_count(part, 3)
            condition, then, otherwise = part.arguments
            sides = self.typed(then, kind), self.typed(otherwise, kind)
            return ir.Select(self._condition(condition), *sides)
        return _refuse_function(part)

    def _conversion(self, part: Call, kind: ElementType) -> ir.Expression:
        _check_count(part, 1)
        (argument,) = part.arguments
        if self.types[id(argument)] is None:
            return self.typed(argument, kind)
        return ir.Convert(kind, self.typed(argument, None))

    def _refuse_untyped(self, part: Expression) -> ir.Expression:
        if isinstance(part, Call) and part.function.text not in functions():
            return _refuse_function(part)
        return fail(
            "lair-literal",
            f"nothing tells the type of `{_text(part)}`",
            part.span,
            label="a literal takes the type of the other operand",
            help=f"write the type: `float16({_text(part)})`",
        )


def _text(part: Expression) -> str:
    return " ".join(part.span.text.split())


def _check_count(part: Call, count: int) -> None:
    if len(part.arguments) != count:
        fail(
            "lair-function-arguments",
            f"`{part.function.text}` takes {counted(count, 'argument')}, not {len(part.arguments)}",
            part.span,
            help="`select(condition, then, otherwise)`" if count == 3 else f"give it {count}",
        )


def _check_function(part: Call, count: int, function: ScalarFunction[Any], kind: ElementType) -> None:
    _check_count(part, count)
    if not function.takes(kind):
        fail(
            "lair-type-mismatch",
            f"`{part.function.text}` takes a float, not {kind.value}",
            part.span,
            help=f"convert its argument: `{part.function.text}(float32(...))`",
        )


def _refuse_function(part: Call) -> ir.Expression:
    name = part.function.text
    return fail(
        "lair-unknown-function",
        f"there is no function `{name}`",
        part.function.span,
        help=suggestion(name, [*functions(), *TYPES]),
    )


def _refuse_mismatch(part: Expression, kind: ElementType, wanted: ElementType) -> ir.Expression:
    return fail(
        "lair-type-mismatch",
        f"`{_text(part)}` is {kind.value}, but {wanted.value} is needed here",
        part.span,
        label=f"is {kind.value}",
        notes=["the operands of an operation, and a tensor and its value, have one type"],
        help=f"convert it: `{wanted.value}({_text(part)})`",
    )


def _refuse_comparison(part: Expression) -> ir.Expression:
    return fail(
        "lair-comparison",
        "a comparison is no value",
        part.span,
        label="only a condition may compare",
        help=f"choose a value: `select({_text(part).strip('()')}, 1, 0)`",
    )


def _refuse_condition(part: Expression) -> ir.Expression:
    return fail(
        "lair-condition",
        f"`{_text(part)}` is not a condition",
        part.span,
        label="must be a comparison",
        help=f"compare it: `{_text(part)} != 0`",
    )
