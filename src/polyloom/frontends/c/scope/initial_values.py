"""What locals of a function hold where a static control part begins, as far as the text tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pycparser import c_ast

from polyloom.frontends.c.scope.literals import is_long_double, literal
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.syntax.regions import Region


@dataclass(frozen=True)
class Initial:
    """``undefined``: nothing has been stored; ``value``: the constant that was, None where it is unknown."""

    undefined: bool
    value: float | int | None


def initial(name: str, region: Region, state: State) -> Initial:
    """Return what a local holds that is declared before a part: only its own declaration is understood."""
    declared = None
    for node in region.before:
        declarations = node.decls if isinstance(node, c_ast.DeclList) else [node]
        for part in declarations:
            if isinstance(part, c_ast.Decl) and part.name == name:
                declared = part
            elif declared is not None and name in _names(part):
                return Initial(False, None)
    if declared is None:
        return Initial(False, None)
    if declared.init is None:
        return Initial(True, None)
    return Initial(False, _constant(declared.init, state))


def _names(node: c_ast.Node) -> Iterator[str]:
    if isinstance(node, c_ast.ID):
        yield node.name
    for _, child in node.children():
        yield from _names(child)


def _constant(node: c_ast.Node, state: State) -> float | int | None:
    """Return the value of a number, with sign or cast."""
    match node:
        case c_ast.Constant():
            unknown = node.type == "string" or is_long_double(node)
            return None if unknown else literal(node, state).value
        case c_ast.UnaryOp(op="-", expr=inner):
            value = _constant(inner, state)
            return None if value is None else -value
        case c_ast.UnaryOp(op="+", expr=inner) | c_ast.Cast(expr=inner):
            return _constant(inner, state)
        case _:
            return None
