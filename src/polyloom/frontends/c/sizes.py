"""``sizeof``. Source: ISO C99, 6.5.3.4."""

from __future__ import annotations

from pycparser import c_ast

from polyloom.frontends.c.c_types import CType, Scalar
from polyloom.frontends.c.declarations import type_of_name
from polyloom.frontends.c.faults import refuse
from polyloom.frontends.c.names import Variable
from polyloom.frontends.c.state import State


def size_of(node: c_ast.Node, state: State) -> int:
    """Return the bytes of an arithmetic type or of a variable of one. Errors: ``c-sizeof``."""
    ctype: CType | None
    if isinstance(node, c_ast.Typename):
        ctype = type_of_name(node, state)
    else:
        found = state.scope.find(node.name) if isinstance(node, c_ast.ID) else None
        ctype = found.type if isinstance(found, Variable) else None
    if isinstance(ctype, Scalar):
        return ctype.element.size
    return refuse(
        "c-sizeof",
        f"the size of `{state.text(node)}` is not known",
        state.span(node),
        helps=["`sizeof` of an arithmetic type can be used in a SCoP"],
    )
