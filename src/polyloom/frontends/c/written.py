"""Which names a piece of C may write: assigned, incremented, or given away by address."""

from __future__ import annotations

from pycparser import c_ast

from polyloom.frontends.c.state import Scope


def written_names(node: c_ast.Node | list[c_ast.Node], scope: Scope) -> frozenset[str]:
    """Return the names of scalars that may change; shadowing makes it an overestimate."""
    finder = _Finder(scope)
    for one in node if isinstance(node, list) else [node]:
        finder.visit(one)
    return frozenset(finder.found)


class _Finder(c_ast.NodeVisitor):  # type: ignore[misc]
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.found: set[str] = set()

    def visit_Assignment(self, node: c_ast.Assignment) -> None:
        self._target(node.lvalue)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: c_ast.UnaryOp) -> None:
        if node.op in ("++", "--", "p++", "p--", "&"):
            self._target(node.expr)
        self.generic_visit(node)

    def _target(self, node: c_ast.Node) -> None:
        if isinstance(node, c_ast.ID):
            self.found.add(node.name)


def contains(node: c_ast.Node, kinds: tuple[type, ...]) -> c_ast.Node | None:
    """Return the first node of one of the kinds, in the order of the text."""
    if isinstance(node, kinds):
        return node
    for _, child in node.children():
        if (found := contains(child, kinds)) is not None:
            return found
    return None
