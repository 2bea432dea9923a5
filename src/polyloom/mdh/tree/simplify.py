"""Trees with what is known of their integers worked out: sums, bounds, branches, loops without points."""

from __future__ import annotations

from dataclasses import replace

from polyloom.ir.integers import fold
from polyloom.mdh.tree.nodes import Code, For, If, LetInteger, Statement, While
from polyloom.mdh.tree.ranges import greatest, least
from polyloom.mdh.tree.rewrite import substituted, with_blocks, with_integers
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, linear_terms, sum_of


def simplified(code: Code) -> Code:
    """Return code without what is known before it runs.

    Keeps true: the same stores of the same values, in the same order.
    """
    found: list[Statement] = []
    for at, statement in enumerate(code):
        if isinstance(statement, LetInteger) and isinstance(value := simple(statement.value), Number):
            return (*found, *simplified(substituted(code[at + 1 :], statement.name, value)))
        found += _simplified(statement)
    return tuple(found)


def _simplified(statement: Statement) -> Code:
    bare = with_integers(with_blocks(statement, lambda block: ()), simple)
    match statement, bare:
        case If(body=body, otherwise=otherwise), If(condition=Number(value=holds)):
            return simplified(body if holds else otherwise)
        case For(body=body), For(
            start=Number(value=start), condition=Operation(operands=(_, Number(value=end)))
        ):
            return () if start >= end else (replace(bare, body=simplified(body)),)
        case For(body=body), For():
            return (replace(bare, body=simplified(body)),)
        case If(body=body, otherwise=otherwise), If():
            return (If(bare.condition, simplified(body), simplified(otherwise)),)
        case While(body=body), While():
            return (While(bare.condition, simplified(body)),)
        case _:
            return (bare,)


def simple(expression: IntExpression) -> IntExpression:
    """Return an expression with numbers worked out, and bounds left out that others are known to imply."""
    match expression:
        case Operation(operator="min", operands=operands):
            return least(map(simple, operands))
        case Operation(operator="max", operands=operands):
            return greatest(map(simple, operands))
        case Operation(operator=operator, operands=operands):
            return _quotient(fold(Operation(operator, tuple(map(simple, operands))), {}))
        case _:
            return expression


def _quotient(expression: IntExpression) -> IntExpression:
    """Return a quotient or rest by a number, as far as it is known: ``4 * i / 4``, ``i % 16 % 4``."""
    match expression:
        case Operation(operator="/" | "%" as operator, operands=(a, Number(value=n))) if n > 0:
            terms, constant = linear_terms([(1, a)])
            if all(c % n == 0 for c in (constant, *(c for c, _ in terms))):
                exact = [*((c // n, term) for c, term in terms), (constant // n, Number(1))]
                return sum_of(exact) if operator == "/" else Number(0)
            return _of_rest(operator, a, n) or expression
        case _:
            return expression


def _of_rest(operator: str, rest: IntExpression, n: int) -> IntExpression | None:
    """Return the quotient or rest by a number of what is itself a rest; None where it is not known."""
    match rest:
        case Operation(operator="%", operands=(_, Number(value=m))) if operator == "/" and 0 < m <= n:
            return Number(0)
        case Operation(operator="%", operands=(a, Number(value=m))) if operator == "%" and m and m % n == 0:
            return Operation("%", (a, Number(n)))
        case _:
            return None
