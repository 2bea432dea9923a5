"""Trees with what is known of their integers worked out: sums, bounds, branches, loops without points."""

from __future__ import annotations

from dataclasses import replace

from polyloom.ir.integers import fold
from polyloom.mdh.tree.nodes import Code, For, If, LetInteger, Statement
from polyloom.mdh.tree.ranges import greatest, least
from polyloom.mdh.tree.rewrite import substituted, with_blocks, with_integers
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation


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
            return fold(Operation(operator, tuple(map(simple, operands))), {})
        case _:
            return expression
