"""Loops and integer expressions as small immutable trees, and how sums are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any, Generic, TypeAlias, TypeVar


@dataclass(frozen=True)
class Number:
    """An integer."""

    value: int


@dataclass(frozen=True)
class Name:
    """A variable or parameter."""

    name: str


@dataclass(frozen=True)
class Operation:
    """An operator (``+``, ``floor``, ``min``, ``and``, ...) applied to integers or truth values."""

    operator: str
    operands: tuple[IntExpression, ...]


IntExpression = Number | Name | Operation


Node = TypeVar("Node", covariant=True)
Other = TypeVar("Other")


@dataclass(frozen=True, kw_only=True)
class Loop(Generic[Node]):
    """``for (iterator = start; condition; iterator += step) body``; nodes are loops, branches and leaves.

    ``parallel``: its iterations are independent of each other, which whoever says so has proved.
    """

    iterator: str
    start: IntExpression
    condition: IntExpression
    step: IntExpression
    body: tuple[Node, ...]
    parallel: bool = False


@dataclass(frozen=True)
class Branch(Generic[Node]):
    """``if (condition) body else otherwise``."""

    condition: IntExpression
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Instance:
    """One instance of a statement, with the coordinates of its domain."""

    statement: str
    arguments: tuple[IntExpression, ...]


Part: TypeAlias = "Loop[Part] | Branch[Part] | Instance"
Tree = tuple[Part, ...]


def nodes_in(body: Iterable[Node]) -> Iterator[Node]:
    """Yield loops, branches, leaves and everything inside them, outside first."""
    for node in body:
        yield node
        if isinstance(node, Loop):
            yield from nodes_in(node.body)
        elif isinstance(node, Branch):
            yield from nodes_in((*node.body, *node.otherwise))


def leaves_in(body: Iterable[Any]) -> Iterator[Any]:
    """Yield what stands in loops and branches, in order."""
    return (node for node in nodes_in(body) if not isinstance(node, Loop | Branch))


def with_leaves(body: Iterable[Any], change: Callable[[Any], Iterable[Other]]) -> tuple[Other, ...]:
    """Return the same loops and branches with what ``change`` gives in place of each leaf."""
    found: list[Any] = []
    for node in body:
        match node:
            case Loop():
                found.append(replace(node, body=with_leaves(node.body, change)))
            case Branch(condition=condition, body=then, otherwise=otherwise):
                found.append(Branch(condition, with_leaves(then, change), with_leaves(otherwise, change)))
            case _:
                found += change(node)
    return tuple(found)


def loop_over(iterator: str, extent: IntExpression, body: Tree) -> Loop[Part]:
    """Return ``for (iterator = 0; iterator < extent; iterator += 1) body``."""
    condition = Operation("<", (Name(iterator), extent))
    return Loop(iterator=iterator, start=Number(0), condition=condition, step=Number(1), body=body)


def loops_over(names: Sequence[str], extents: Sequence[IntExpression], body: Tree) -> Tree:
    """Return loops over a rectangle around a tree, the first name outermost."""
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = (loop_over(name, extent, body),)
    return body


def sum_of(terms: Sequence[tuple[int, IntExpression]]) -> IntExpression:
    """Return ``c0 * e0 + c1 * e1 + ...`` as a person writes it.

    Sums inside sums are taken apart, equal terms and numbers added up; what is added comes before what is
    taken off, a number last, but first where nothing else is added: ``2 * i - j + 3``, ``15 - i``.
    """
    parts, constant = linear_terms(terms)
    parts.sort(key=lambda part: part[0] < 0)
    if constant > 0 and not any(coefficient > 0 for coefficient, _ in parts):
        parts.insert(0, (1, Number(constant)))
    elif constant or not parts:
        parts.append((1 if constant >= 0 else -1, Number(abs(constant))))
    result = _scaled(*parts[0])
    for coefficient, term in parts[1:]:
        sign = "+" if coefficient > 0 else "-"
        result = Operation(sign, (result, _scaled(abs(coefficient), term)))
    return result


def tidy(expression: Operation) -> IntExpression:
    """Write sums as ``sum_of`` does."""
    return sum_of([(1, expression)]) if expression.operator in ("+", "-", "*") else expression


def linear_terms(terms: Sequence[tuple[int, IntExpression]]) -> tuple[list[tuple[int, IntExpression]], int]:
    """Return coefficients and terms that are no sums, each term once and in order, and the constant."""
    coefficients: dict[IntExpression, int] = {}
    constant = 0
    for coefficient, expression in terms:
        constant += _add_terms(coefficients, coefficient, expression)
    return [(c, term) for term, c in coefficients.items() if c], constant


def _add_terms(coefficients: dict[IntExpression, int], factor: int, expression: IntExpression) -> int:
    """Add the terms whose sum is ``factor`` times an expression; return the part that is a number."""
    if isinstance(expression, Number):
        return factor * expression.value
    if isinstance(expression, Operation):
        operator, operands = expression.operator, expression.operands
        if operator == "+" or operator == "-":
            rest = factor if operator == "+" else -factor
            constant = _add_terms(coefficients, factor if len(operands) > 1 else rest, operands[0])
            for operand in operands[1:]:
                constant += _add_terms(coefficients, rest, operand)
            return constant
        if operator == "*" and len(operands) == 2:
            first, second = operands
            if isinstance(first, Number):
                return _add_terms(coefficients, factor * first.value, second)
            if isinstance(second, Number):
                return _add_terms(coefficients, factor * second.value, first)
    coefficients[expression] = coefficients.get(expression, 0) + factor
    return 0


def product_of(factors: Sequence[IntExpression]) -> IntExpression:
    """Return the product, numbers folded."""
    constant = 1
    result: IntExpression | None = None
    for factor in factors:
        if isinstance(factor, Number):
            constant *= factor.value
        else:
            result = factor if result is None else Operation("*", (result, factor))
    if result is None:
        return Number(constant)
    return result if constant == 1 else Operation("*", (Number(constant), result))


def _scaled(coefficient: int, term: IntExpression) -> IntExpression:
    if coefficient == 1:
        return term
    if isinstance(term, Number):
        return Number(coefficient * term.value)
    if coefficient == -1:
        return Operation("-", (term,))
    return Operation("*", (Number(coefficient), term))


def substitute(tree: Tree, name: str, value: IntExpression) -> Tree:
    """Replace a variable in a tree."""
    return tuple(_substitute_node(node, name, value) for node in tree)


def _substitute_node(node: Part, name: str, value: IntExpression) -> Part:
    def inside(expression: IntExpression) -> IntExpression:
        return replace_name(expression, name, value)

    match node:
        case Loop(start=start, condition=condition, step=step, body=body):
            body = substitute(body, name, value)
            start, condition, step = map(inside, (start, condition, step))
            return replace(node, start=start, condition=condition, step=step, body=body)
        case Branch(condition=condition, body=body, otherwise=otherwise):
            sides = substitute(body, name, value), substitute(otherwise, name, value)
            return Branch(inside(condition), *sides)
        case Instance(statement=statement, arguments=arguments):
            return Instance(statement, tuple(inside(argument) for argument in arguments))


def rename_iterator(tree: Tree, iterator: str, name: str) -> Tree:
    """Call the loops over ``iterator``, and what stands in them, by another name."""

    def renamed(node: Part) -> Part:
        match node:
            case Loop(iterator=found, condition=condition):
                body = rename_iterator(node.body, iterator, name)
                if found != iterator:
                    return replace(node, body=body)
                condition = replace_name(condition, iterator, Name(name))
                body = substitute(body, iterator, Name(name))
                return replace(node, iterator=name, condition=condition, body=body)
            case Branch(condition=condition):
                body = rename_iterator(node.body, iterator, name)
                return Branch(condition, body, rename_iterator(node.otherwise, iterator, name))
            case Instance():
                return node

    return tuple(renamed(node) for node in tree)


def iterators_in(tree: Tree) -> Iterator[str]:
    """Yield the iterators of a tree's loops, outer ones first; a name once for each loop."""
    return (node.iterator for node in nodes_in(tree) if isinstance(node, Loop))


def replace_name(expression: IntExpression, name: str, value: IntExpression) -> IntExpression:
    """Replace a variable in an expression."""
    return replace_names(expression, {name: value})


def replace_names(expression: IntExpression, values: Mapping[str, IntExpression]) -> IntExpression:
    """Replace variables in an expression, all at once."""
    if isinstance(expression, Name):
        return values.get(expression.name, expression)
    if not isinstance(expression, Operation):
        return expression
    replaced = tuple([replace_names(o, values) for o in expression.operands])
    if all(map(is_, replaced, expression.operands)):
        return expression
    return tidy(Operation(expression.operator, replaced))


def names_in(expression: IntExpression) -> frozenset[str]:
    """Return the variables of an expression."""
    match expression:
        case Name(name=name):
            return frozenset({name})
        case Operation(operands=operands):
            return frozenset(n for o in operands for n in names_in(o))
        case _:
            return frozenset()


def operation_count(expression: IntExpression) -> int:
    """Return the number of operations that evaluating an expression takes."""
    if isinstance(expression, Operation):
        return max(1, len(expression.operands) - 1) + sum(operation_count(o) for o in expression.operands)
    return 0
