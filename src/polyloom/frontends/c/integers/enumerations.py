"""Members of enumerations, which are integer constants."""

from __future__ import annotations

from pycparser import c_ast

from polyloom.frontends.c.integers.affine import affine, constant_of
from polyloom.frontends.c.scope.names import EnumConstant
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.syntax.faults import NotAffine


def enumerate_members(node: c_ast.Node, state: State) -> None:
    """Define the members of the enumerations inside a declaration."""
    if isinstance(node, c_ast.Enum) and node.values is not None:
        following = 0
        for member in node.values.enumerators:
            if member.value is not None:
                following = _constant(member.value, state)
            state.scope.names[member.name] = EnumConstant(following)
            following += 1
        return
    for _, child in node.children():
        enumerate_members(child, state)


def _constant(node: c_ast.Node, state: State) -> int:
    try:
        return constant_of(affine(node, state)) or 0
    except NotAffine:
        return 0
