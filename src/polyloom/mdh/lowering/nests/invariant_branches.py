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
other loops go into a branch only where that is all they have. A branch on data, which may exist only where
there is an iteration, is asked where there is one.

Source: Allen, Cocke, A Catalogue of Optimizing Transformations, 1972 (unswitching).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from polyloom.ir.integers import holds
from polyloom.mdh.tree.nodes import (
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    LetInteger,
    Mark,
    Statement,
    Store,
)
from polyloom.mdh.tree.rewrite import declared_in, integers_of, loads_of, rewritten, walk
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, names_in, replace_name

MOST_BRANCHES, MOST_STATEMENTS = 2, 24
"""Of a loop that is copied: branches that it always takes alike, and statements in all."""


def invariant_branches_outside(function: Function) -> Function:
    """Return a function in which loops are inside of branches that they take alike in each iteration.

    Keeps true: the same stores of the same values, in the same order.
    """
    shared = sharing(function)
    return replace(function, body=rewritten(function.body, lambda s: _outside(s, shared)))


def sharing(function: Function) -> AbstractSet[str]:
    """Return the names of arrays whose elements may be in others, too."""
    others = {name for r in function.reshaped for name in (r.name, r.parameter)}
    return others | {p.name for p in function.parameters if not p.alone}


def _outside(statement: Statement, shared: AbstractSet[str]) -> Code:
    """``shared``: as `sharing` has them."""
    if not isinstance(statement, For) or statement.kind in (Kind.VECTOR, Kind.ITEM, Kind.MATRIX):
        return (statement,)
    return in_branches(statement, shared) if _may_be_copied(statement, shared) else (statement,)


def _may_be_copied(loop: For, shared: AbstractSet[str]) -> bool:
    """Whether there is little to copy, or nothing, as where such a branch is all there is."""
    if isinstance(loop.body[0] if len(loop.body) == 1 else None, If):
        return not any(isinstance(s, Mark) for s in walk(loop.body))
    inside = list(walk(loop.body))
    branches = sum(1 for _ in _branches(loop, shared))
    is_innermost = not any(isinstance(s, For | Mark) for s in inside)
    return is_innermost and branches <= MOST_BRANCHES and len(inside) <= MOST_STATEMENTS


def in_branches(loop: For, shared: AbstractSet[str]) -> Code:
    """Return a loop inside of the branches that it takes alike; itself where there are none."""
    branch = next(_branches(loop, shared), None)
    if branch is None:
        return (loop,)

    def sides(body: Code) -> Code:
        return tuple(s for statement in loop.body for s in (body if statement is branch else (statement,)))

    def looped(body: Code) -> Code:
        return in_branches(replace(loop, body=body), shared) if body else ()

    found = If(branch.condition, looped(sides(branch.body)), looped(sides(branch.otherwise)))
    if not isinstance(branch.condition, Compute):
        return (found,)
    first = replace_name(loop.condition, loop.iterator, loop.start)
    return (found,) if not names_in(first) and holds(first, {}) else (If(first, (found,)),)


def _branches(loop: For, shared: AbstractSet[str]) -> Iterator[If]:
    """Yield the branches of a loop's body on what no iteration changes."""
    changed = {loop.iterator, *(s.name for s in walk(loop.body) if isinstance(s, LetInteger))}
    for statement in loop.body:
        if not isinstance(statement, If):
            continue
        asked = statement.condition
        if isinstance(asked, Compute):
            if _is_kept(statement, loop, changed, shared):
                yield statement
        elif not names_in(asked) & changed and _has_a_value(asked):
            yield statement


def _is_kept(branch: If, loop: For, changed: AbstractSet[str], shared: AbstractSet[str]) -> bool:
    """Whether no iteration changes the data that a branch asks; of loops that threads share, nobody knows."""
    if any(isinstance(s, For) and s.kind is Kind.GROUP for s in walk((loop,))):
        return False
    integers = {n for e in integers_of(replace(branch, body=(), otherwise=())) for n in names_in(e)}
    loaded = {load.array for load in loads_of(branch)}
    stored = {s.array for s in walk(loop.body) if isinstance(s, Store)}
    if stored & shared and loaded & shared:
        return False
    return not integers & changed and not loaded & (stored | set(declared_in(loop.body)))


def _has_a_value(condition: IntExpression) -> bool:
    """Whether a condition has a value also where no iteration asks for it: nothing is divided by a name."""
    match condition:
        case Operation(operator="/" | "%", operands=(a, b)):
            return isinstance(b, Number) and b.value != 0 and _has_a_value(a)
        case Operation(operands=operands):
            return all(map(_has_a_value, operands))
        case _:
            return True
