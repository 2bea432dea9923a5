"""The nodes of a syntax tree, one after another."""

from __future__ import annotations

from collections.abc import Iterator

from pycparser import c_ast


def nodes_in(node: c_ast.Node) -> Iterator[c_ast.Node]:
    """Yield a node and all that are inside it, in the order of the text."""
    yield node
    for _, child in node.children():
        yield from nodes_in(child)
