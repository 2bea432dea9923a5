"""The nodes of a syntax tree, one after another."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pycparser import c_ast

LOOPS = (c_ast.For, c_ast.While)
"""Loops that may be parts."""


def nodes_in(node: c_ast.Node) -> Iterator[c_ast.Node]:
    """Yield a node and all that are inside it, in the order of the text."""
    yield node
    for _, child in node.children():
        yield from nodes_in(child)


def value_and_suffix(literal: c_ast.Constant) -> tuple[int, str]:
    """Return an integer (010 is 8), and the letters behind it, small. Source: ISO C99, 6.4.4."""
    text = literal.value.lower()
    digits = text.rstrip("ul")
    value = int(digits, 8) if re.fullmatch(r"0[0-7]+", digits) else int(digits, 0)
    return value, text[len(digits) :]
