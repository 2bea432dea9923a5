"""Loops and integer expressions as small immutable trees, and how sums are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


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


@dataclass(frozen=True, kw_only=True)
class Loop:
    """``for (iterator = start; condition; iterator += step) body``."""

    iterator: str
    start: IntExpression
    condition: IntExpression
    step: IntExpression
    body: Tree


@dataclass(frozen=True)
class Branch:
    """``if (condition) body else otherwise``."""

    condition: IntExpression
    body: Tree
    otherwise: Tree


@dataclass(frozen=True)
class Instance:
    """One instance of a statement, with the coordinates of its domain."""

    statement: str
    arguments: tuple[IntExpression, ...]


Tree = tuple[Loop | Branch | Instance, ...]


def loop_over(iterator: str, extent: IntExpression, body: Tree) -> Loop:
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
        for factor, term in _terms(expression):
            if isinstance(term, Number):
                constant += coefficient * factor * term.value
            else:
                coefficients[term] = coefficients.get(term, 0) + coefficient * factor
    return [(c, term) for term, c in coefficients.items() if c], constant


def _terms(expression: IntExpression) -> Iterator[tuple[int, IntExpression]]:
    """Yield coefficients and terms whose sum the expression is."""
    match expression:
        case Operation(operator="+" | "-" as sign, operands=(first, *rest)):
            yield from _times(-1 if sign == "-" and not rest else 1, first)
            for operand in rest:
                yield from _times(-1 if sign == "-" else 1, operand)
        case Operation(operator="*", operands=(Number(value=factor), operand)):
            yield from _times(factor, operand)
        case Operation(operator="*", operands=(operand, Number(value=factor))):
            yield from _times(factor, operand)
        case _:
            yield 1, expression


def _times(factor: int, expression: IntExpression) -> Iterator[tuple[int, IntExpression]]:
    return ((factor * coefficient, term) for coefficient, term in _terms(expression))


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


def _substitute_node(
    node: Loop | Branch | Instance, name: str, value: IntExpression
) -> Loop | Branch | Instance:
    def inside(expression: IntExpression) -> IntExpression:
        return replace_name(expression, name, value)

    match node:
        case Loop(iterator=iterator, start=start, condition=condition, step=step, body=body):
            return Loop(
                iterator=iterator,
                start=inside(start),
                condition=inside(condition),
                step=inside(step),
                body=substitute(body, name, value),
            )
        case Branch(condition=condition, body=body, otherwise=otherwise):
            return Branch(
                inside(condition), substitute(body, name, value), substitute(otherwise, name, value)
            )
        case Instance(statement=statement, arguments=arguments):
            return Instance(statement, tuple(inside(argument) for argument in arguments))


def rename_iterator(tree: Tree, iterator: str, name: str) -> Tree:
    """Call the loops over ``iterator``, and what stands in them, by another name."""

    def renamed(node: Loop | Branch | Instance) -> Loop | Branch | Instance:
        match node:
            case Loop(iterator=found, start=start, condition=condition, step=step):
                body = rename_iterator(node.body, iterator, name)
                if found != iterator:
                    return Loop(iterator=found, start=start, condition=condition, step=step, body=body)
                condition = replace_name(condition, iterator, Name(name))
                return Loop(
                    iterator=name,
                    start=start,
                    condition=condition,
                    step=step,
                    body=substitute(body, iterator, Name(name)),
                )
            case Branch(condition=condition):
                body = rename_iterator(node.body, iterator, name)
                return Branch(condition, body, rename_iterator(node.otherwise, iterator, name))
            case Instance():
                return node

    return tuple(renamed(node) for node in tree)


def instances_in(tree: Tree) -> Iterator[Instance]:
    """Yield the statement instances of a tree."""
    for node in tree:
        match node:
            case Loop(body=body):
                yield from instances_in(body)
            case Branch(body=body, otherwise=otherwise):
                yield from instances_in((*body, *otherwise))
            case Instance():
                yield node


def iterators_in(tree: Tree) -> Iterator[str]:
    """Yield the iterators of a tree's loops, outer ones first; a name once for each loop."""
    for node in tree:
        match node:
            case Loop(iterator=iterator, body=body):
                yield iterator
                yield from iterators_in(body)
            case Branch(body=body, otherwise=otherwise):
                yield from iterators_in((*body, *otherwise))
            case Instance():
                pass


def replace_name(expression: IntExpression, name: str, value: IntExpression) -> IntExpression:
    """Replace a variable in an expression."""
    match expression:
        case Name(name=found):
            return value if found == name else expression
        case Operation(operator=operator, operands=operands):
            replaced = Operation(operator, tuple(replace_name(o, name, value) for o in operands))
            return tidy(replaced)
        case _:
            return expression


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
