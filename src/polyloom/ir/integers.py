"""Integer expressions: their values, also on arrays, and folding what is known into them.

Operators as C has them: ``/`` and ``%`` go towards zero; ``floor`` divides downwards; ``?`` chooses; truth
values come from comparisons, ``and``, ``or`` and ``not``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Other,
    Tree,
    names_in,
    tidy,
)

Integers = npt.NDArray[Any]
"""Values of an integer expression (int64), or truth values (bool)."""


def values_of(expression: IntExpression, names: Mapping[str, Any]) -> Integers:
    """Return an expression's values; ``names`` to integers or integer arrays, which broadcast together.

    KeyError where a name has no value; ZeroDivisionError where something is divided by zero.
    """
    match expression:
        case Number(value=value):
            return np.asarray(value, dtype=np.int64)
        case Name(name=name):
            return np.asarray(names[name], dtype=np.int64)
        case Operation(operator=operator, operands=operands):
            found = [values_of(operand, names) for operand in operands]
            result: Integers = np.asarray(_OPERATORS[operator](*found))
            return result


def integer(expression: IntExpression, names: Mapping[str, int]) -> int:
    """Return an expression's value as an integer. Errors: those of ``values_of``."""
    match expression:
        case Number(value=value):
            return value
        case Name(name=name):
            return int(names[name])
        case Operation(operator=operator, operands=operands):
            return int(_OF_NUMBERS[operator](*(integer(operand, names) for operand in operands)))


def holds(condition: IntExpression, names: Mapping[str, int]) -> bool:
    """Return whether a condition holds. Errors: those of ``values_of``."""
    return bool(values_of(condition, names))


def _several(function: Callable[[Integers, Integers], Integers]) -> Callable[..., Integers]:
    return lambda *operands: reduce(function, operands)


def _difference(first: Integers, *rest: Integers) -> Integers:
    return reduce(np.subtract, rest, first) if rest else np.negative(first)


def _floor(a: Integers, b: Integers) -> Integers:
    if not np.all(b):
        raise ZeroDivisionError("an integer expression divides by zero")
    return np.floor_divide(a, b)


def _quotient(a: Integers, b: Integers) -> Integers:
    down = _floor(a, b)
    return np.where((down * b != a) & ((a < 0) != (b < 0)), down + 1, down)


def _remainder(a: Integers, b: Integers) -> Integers:
    return np.asarray(a - b * _quotient(a, b))


_OPERATORS: dict[str, Callable[..., Integers]] = {
    "+": _several(np.add),
    "-": _difference,
    "*": _several(np.multiply),
    "/": _quotient,
    "%": _remainder,
    "floor": _floor,
    "min": _several(np.minimum),
    "max": _several(np.maximum),
    "?": np.where,
    "and": _several(np.logical_and),
    "or": _several(np.logical_or),
    "not": np.logical_not,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def _down(a: int, b: int) -> int:
    return a // b


def _towards_zero(a: int, b: int) -> int:
    return -(-a // b) if (a < 0) != (b < 0) else a // b


_OF_NUMBERS: dict[str, Callable[..., int]] = {
    "+": lambda *numbers: sum(numbers),
    "-": lambda first, *rest: first - sum(rest) if rest else -first,
    "*": lambda *numbers: prod(numbers),
    "/": _towards_zero,
    "%": lambda a, b: a - b * _towards_zero(a, b),
    "floor": _down,
    "min": min,
    "max": max,
    "?": lambda condition, a, b: a if condition else b,
    "and": lambda *truths: all(truths),
    "or": lambda *truths: any(truths),
    "not": lambda truth: not truth,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
OPERATORS = frozenset(_OPERATORS)
"""The operators that an integer expression may have."""

TRUE, FALSE = Number(1), Number(0)


def fold(expression: IntExpression, names: Mapping[str, int]) -> IntExpression:
    """Return an expression with the values of ``names`` in it, and what is then known computed.

    A condition that is known becomes the number 1 or 0. What would divide by zero is left as it is.
    """
    match expression:
        case Name(name=name):
            return Number(names[name]) if name in names else expression
        case Operation(operator=operator, operands=operands):
            return _folded(Operation(operator, tuple(fold(o, names) for o in operands)))
        case _:
            return expression


def _folded(expression: Operation) -> IntExpression:
    operator, operands = expression.operator, expression.operands
    if all(isinstance(o, Number) for o in operands):
        try:
            return Number(integer(expression, {}))
        except ZeroDivisionError:
            return expression
    if operator == "?" and isinstance(operands[0], Number):
        return operands[1] if operands[0].value else operands[2]
    if operator in ("and", "or"):
        return _junction(operator, operands)
    return tidy(expression)


def _junction(operator: str, operands: tuple[IntExpression, ...]) -> IntExpression:
    """Leave out what is known: ``1 and x`` is ``x``, ``0 and x`` is 0."""
    neutral = TRUE if operator == "and" else FALSE
    rest = [o for o in operands if not isinstance(o, Number)]
    if any(bool(o.value) != bool(neutral.value) for o in operands if isinstance(o, Number)):
        return FALSE if operator == "and" else TRUE
    if not rest:
        return neutral
    return rest[0] if len(rest) == 1 else Operation(operator, tuple(rest))


def fold_tree(tree: Tree, names: Mapping[str, int]) -> Tree:
    """Return loops with the values of ``names`` in them; branches that are known are decided."""

    def folded(instance: Instance, known: Mapping[str, int]) -> Tree:
        return (replace(instance, arguments=tuple(fold(a, known) for a in instance.arguments)),)

    return fold_nodes(tree, names, folded)


def fold_nodes(
    body: Iterable[Any],
    names: Mapping[str, int],
    leaf: Callable[[Any, Mapping[str, int]], Iterable[Other]],
) -> tuple[Other, ...]:
    """Return loops with the values of ``names`` in them; ``leaf``: a leaf with values known there."""
    return tuple(part for node in body for part in _fold_node(node, names, leaf))


def _fold_node(
    node: Any, names: Mapping[str, int], leaf: Callable[[Any, Mapping[str, int]], Iterable[Any]]
) -> Iterable[Any]:
    match node:
        case Loop(iterator=iterator):
            inner = {name: value for name, value in names.items() if name != iterator}
            loop = replace(
                node,
                start=fold(node.start, names),
                condition=fold(node.condition, inner),
                step=fold(node.step, inner),
                body=fold_nodes(node.body, inner, leaf),
            )
            return (loop,)
        case Branch(condition=condition, body=body, otherwise=otherwise):
            known = fold(condition, names)
            if isinstance(known, Number):
                return fold_nodes(body if known.value else otherwise, names, leaf)
            return (Branch(known, fold_nodes(body, names, leaf), fold_nodes(otherwise, names, leaf)),)
        case _:
            return leaf(node, names)


def names_in_tree(tree: Tree) -> frozenset[str]:
    """Return the names that loops speak of, without the iterators of the loops themselves."""
    found: set[str] = set()
    for node in tree:
        match node:
            case Loop(iterator=iterator, start=start, condition=condition, step=step, body=body):
                inside = names_in(condition) | names_in(step) | names_in_tree(body)
                found |= names_in(start) | (inside - {iterator})
            case Branch(condition=condition, body=body, otherwise=otherwise):
                found |= names_in(condition) | names_in_tree(body) | names_in_tree(otherwise)
            case Instance(arguments=arguments):
                found |= {name for a in arguments for name in names_in(a)}
    return frozenset(found)
