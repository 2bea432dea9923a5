"""``continue``, ``break`` and early ``return`` as branches around what they leave out.

if x[i] < 0:                              if not x[i] < 0:
    continue                   ->             s += x[i]
s += x[i]

if n == 0:                                if n == 0:
    return 0.0                 ->             result_1 = 0.0
return s / n                              else:
                                              result_1 = s / n
                                          return result_1
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

Body = Sequence[ast.stmt]
Ends = Callable[[ast.stmt], bool]

_LARGEST = 400
"""Statements that a body may have afterwards: branches that end in several ways repeat what follows."""


class TooManyEnds(Exception):
    """What follows the branches would be repeated too often."""


def without_continue(body: Body) -> list[ast.stmt]:
    """Return the body of a loop without ``continue`` of that loop. Raises ``TooManyEnds``."""
    return _ended(body, lambda node: isinstance(node, ast.Continue))


def without_break(body: Body) -> tuple[list[ast.stmt], list[ast.expr]]:
    """Return the body of a loop without ``break``, and the tests of which one ends the loop::

        if j > i:                      if j > i:
            n[i] = j                       n[i] = j
            break                      else:
        s += x[j]                          s += x[j]

    Only a ``break`` at the end of an ``if`` of the body itself is taken; others stay.
    """
    for k, node in enumerate(body):
        match node:
            case ast.If(test=test, body=[*before, ast.Break()], orelse=[]):
                rest, tests = without_break(body[k + 1 :])
                return [*body[:k], *_branched(node, before, rest)], [test, *tests]
    return list(body), []


def with_one_return(body: Body, name: str) -> list[ast.stmt]:
    """Return the body of a function with ``return`` at its end alone; ``name``: begins new names.

    It stays as it is where there is an early ``return`` beside others of another number of values, or of
    none. Raises ``TooManyEnds``.
    """
    returns = [part for node in body for part in _parts(node) if isinstance(part, ast.Return)]
    counts = {None if node.value is None else len(_values(node.value)) for node in returns}
    last = body[-1] if body else None
    is_at_end = len(returns) == 1 and returns[0] is last
    if not returns or is_at_end or len(counts) > 1 or None in counts or not _always_returns(body):
        return list(body)
    (count,) = counts
    assert count is not None
    names = [f"{name}_{k}" for k in range(count)]
    found = _returning(_ended(body, lambda node: isinstance(node, ast.Return), kept=True), names)
    is_tuple = any(isinstance(node.value, ast.Tuple) for node in returns)
    read: list[ast.expr] = [ast.copy_location(ast.Name(n, ast.Load()), returns[0]) for n in names]
    value = ast.copy_location(ast.Tuple(read, ast.Load()), returns[0]) if is_tuple else read[0]
    return [*found, ast.copy_location(ast.Return(value), returns[-1])]


def _parts(node: ast.stmt) -> list[ast.stmt]:
    """Return a statement and those in its branches, not those in loops."""
    if not isinstance(node, ast.If):
        return [node]
    return [node, *(part for inner in (*node.body, *node.orelse) for part in _parts(inner))]


def _ended(body: Body, ends: Ends, *, kept: bool = False) -> list[ast.stmt]:
    """Return a body in which nothing follows what ends it, which is left out if it is not ``kept``."""
    for k, node in enumerate(body):
        if ends(node):
            return list(body[: k + kept])
        if any(map(ends, _parts(node))):
            assert isinstance(node, ast.If)
            rest = body[k + 1 :]
            branches = [_ended([*branch, *rest], ends, kept=kept) for branch in (node.body, node.orelse)]
            found = [*body[:k], *_branched(node, *branches)]
            if sum(len(_parts(part)) for part in found) > _LARGEST:
                raise TooManyEnds
            return found
    return list(body)


def _branched(node: ast.If, then: list[ast.stmt], otherwise: list[ast.stmt]) -> list[ast.stmt]:
    """Return an ``if``, turned round where nothing is done if the test holds."""
    if not then and not otherwise:
        return []
    test = node.test
    if not then:
        test = ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
        then, otherwise = otherwise, []
    return [ast.copy_location(ast.If(test, then, otherwise), node)]


def _always_returns(body: Body) -> bool:
    match body[-1] if body else None:
        case ast.Return():
            return True
        case ast.If(body=then, orelse=otherwise):
            return _always_returns(then) and _always_returns(otherwise)
        case _:
            return False


def _values(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _returning(body: Body, names: Sequence[str]) -> list[ast.stmt]:
    """Return a body that gives names to what it returned."""
    found = list[ast.stmt]()
    for node in body:
        match node:
            case ast.Return(value=ast.expr() as value):
                targets = [ast.copy_location(ast.Name(name, ast.Store()), node) for name in names]
                found += [
                    ast.copy_location(ast.Assign([target], part), node)
                    for target, part in zip(targets, _values(value), strict=True)
                ]
            case ast.If(test=test, body=then, orelse=otherwise):
                branches = _returning(then, names), _returning(otherwise, names)
                found.append(ast.copy_location(ast.If(test, *branches), node))
            case _:
                found.append(node)
    return found
