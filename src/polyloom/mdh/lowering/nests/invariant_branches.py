"""Branches that a loop takes alike in all iterations, in front of the loop.

    for i from 0 to n:                               if n > 10:
      b[i] = a[i] * d[i]                               for i from 0 to n:
      if n > 10: c[i] = c[i] + d[i]           ->         b[i] = a[i] * d[i]
      else: c[i] = d[i]                                  c[i] = c[i] + d[i]
                                                     else:
                                                       for i from 0 to n:
                                                         b[i] = a[i] * d[i]
                                                         c[i] = d[i]

C compilers make vectors of each of these loops, and none of the first. Innermost loops become up to four;
other loops go into a branch only where that is all they have.

Source: Allen, Cocke, A Catalogue of Optimizing Transformations, 1972 (unswitching).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from polyloom.mdh.tree.nodes import Code, Compute, For, Function, If, Kind, LetInteger, Mark, Statement
from polyloom.mdh.tree.rewrite import rewritten, walk
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, names_in

MOST_BRANCHES, MOST_STATEMENTS = 2, 24
"""Of a loop that is copied: branches that it always takes alike, and statements in all."""


def invariant_branches_outside(function: Function) -> Function:
    """Return a function in which loops are inside of branches that they take alike in each iteration.

    Keeps true: the same stores of the same values, in the same order.
    """
    return replace(function, body=rewritten(function.body, _outside))


def _outside(statement: Statement) -> Code:
    if not isinstance(statement, For) or statement.kind in (Kind.VECTOR, Kind.ITEM, Kind.MATRIX):
        return (statement,)
    return _in_branches(statement) if _may_be_copied(statement) else (statement,)


def _may_be_copied(loop: For) -> bool:
    """Whether there is little to copy, or nothing, as where such a branch is all there is."""
    if isinstance(loop.body[0] if len(loop.body) == 1 else None, If):
        return not any(isinstance(s, Mark) for s in walk(loop.body))
    inside = list(walk(loop.body))
    branches = sum(1 for _ in _branches(loop))
    is_innermost = not any(isinstance(s, For | Mark) for s in inside)
    return is_innermost and branches <= MOST_BRANCHES and len(inside) <= MOST_STATEMENTS


def _in_branches(loop: For) -> Code:
    branch = next(_branches(loop), None)
    if branch is None:
        return (loop,)

    def sides(body: Code) -> Code:
        return tuple(s for statement in loop.body for s in (body if statement is branch else (statement,)))

    def looped(body: Code) -> Code:
        return _in_branches(replace(loop, body=body)) if body else ()

    return (If(branch.condition, looped(sides(branch.body)), looped(sides(branch.otherwise))),)


def _branches(loop: For) -> Iterator[If]:
    """Yield the branches of a loop's body on integers that no iteration changes."""
    changed = {loop.iterator, *(s.name for s in walk(loop.body) if isinstance(s, LetInteger))}
    for statement in loop.body:
        if isinstance(statement, If) and not isinstance(statement.condition, Compute):
            asked = statement.condition
            if not names_in(asked) & changed and _has_a_value(asked):
                yield statement


def _has_a_value(condition: IntExpression) -> bool:
    """Whether a condition has a value also where no iteration asks for it: nothing is divided by a name."""
    match condition:
        case Operation(operator="/" | "%", operands=(a, b)):
            return isinstance(b, Number) and b.value != 0 and _has_a_value(a)
        case Operation(operands=operands):
            return all(map(_has_a_value, operands))
        case _:
            return True
