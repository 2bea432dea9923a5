"""Functions that return inside of loops, as functions that leave these first.

    for (j = 0; j < n; j++)           int done = 0;
      if (a[j] == x)                  for (j = 0; j < n; j++)
        return j;               ->      if (a[j] == x) { result = j; done = 1; break; }
    return -1;                        if (!done) { result = -1; }

Only of functions that are called: what they return is a variable by then. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence

from pycparser import c_ast

from polyloom.frontends.c.syntax.nodes import LOOPS, nodes_in

DONE = "polyloom_done"


def with_one_exit(items: Sequence[c_ast.Node], result: str | None) -> list[c_ast.Node]:
    """Return a function's statements without ``return``; the same where none is inside of a loop.

    ``result``: the variable that holds what is returned; None where nothing is. The same, too, where one is
    inside of a ``switch``, which a ``break`` would leave.
    """
    found = [part for item in items for part in nodes_in(item)]
    loops = [part for part in found if isinstance(part, LOOPS)]
    if not any(_returns(loop.stmt) for loop in loops) or any(
        isinstance(part, (c_ast.Switch, c_ast.Goto)) and _returns(part) for part in found
    ):
        return list(items)
    first = c_ast.Decl(DONE, [], [], [], [], _int(), c_ast.Constant("int", "0"), None, items[0].coord)
    return [first, *_Exit(result).block(items, inside=False)]


def _int() -> c_ast.TypeDecl:
    return c_ast.TypeDecl(DONE, [], None, c_ast.IdentifierType(["int"]))


def _returns(node: c_ast.Node | None) -> bool:
    return node is not None and any(isinstance(part, c_ast.Return) for part in nodes_in(node))


class _Exit:
    def __init__(self, result: str | None) -> None:
        self.result = result

    def block(self, items: Sequence[c_ast.Node], *, inside: bool) -> list[c_ast.Node]:
        """Return statements of a block; ``inside``: whether it is in a loop, which a ``return`` leaves."""
        found: list[c_ast.Node] = []
        for k, node in enumerate(items):
            found += self.statement(node, inside=inside)
            if not _returns(node):
                continue
            if isinstance(node, c_ast.Return):
                break
            if inside and any(isinstance(part, LOOPS) for part in nodes_in(node)):
                found.append(c_ast.If(c_ast.ID(DONE), c_ast.Break(node.coord), None, node.coord))
            if not inside:
                rest = self.block(items[k + 1 :], inside=False)
                asked = c_ast.UnaryOp("!", c_ast.ID(DONE, node.coord), node.coord)
                found += [c_ast.If(asked, c_ast.Compound(rest, node.coord), None, node.coord)] if rest else []
                break
        return found

    def statement(self, node: c_ast.Node, *, inside: bool) -> list[c_ast.Node]:
        at = node.coord
        if not _returns(node):
            return [node]
        match node:
            case c_ast.Return(expr=value):
                stored = [] if value is None or self.result is None else [_assigned(self.result, value)]
                done = _assigned(DONE, c_ast.Constant("int", "1", at))
                return [*stored, done, *([c_ast.Break(at)] if inside else [])]
            case c_ast.Compound(block_items=items):
                return [c_ast.Compound(self.block(items or (), inside=inside), at)]
            case c_ast.If(cond=condition, iftrue=then, iffalse=otherwise):
                sides = (self.branch(side, inside=inside) for side in (then, otherwise))
                return [c_ast.If(condition, *sides, at)]
            case c_ast.For(init=first, cond=condition, next=step, stmt=body):
                return [c_ast.For(first, condition, step, self.branch(body, inside=True), at)]
            case c_ast.While(cond=condition, stmt=body):
                return [c_ast.While(condition, self.branch(body, inside=True), at)]
            case c_ast.DoWhile(cond=condition, stmt=body):
                return [c_ast.DoWhile(condition, self.branch(body, inside=True), at)]
            case _:
                return [node]

    def branch(self, node: c_ast.Node | None, *, inside: bool) -> c_ast.Node | None:
        if node is None:
            return None
        items = node.block_items or () if isinstance(node, c_ast.Compound) else (node,)
        return c_ast.Compound(self.block(items, inside=inside), node.coord)


def _assigned(name: str, value: c_ast.Node) -> c_ast.Node:
    return c_ast.Assignment("=", c_ast.ID(name, value.coord), value, value.coord)
