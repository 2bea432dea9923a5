"""Conditions on pointers alone: ``p != NULL``, ``!p``, ``if (p)``.

A pointer that the part uses is taken not to be NULL; whoever calls the part has to look first. Source of what
such conditions mean: ISO C99, 6.5.9 and 6.3.2.3.
"""

from __future__ import annotations

from pycparser import c_ast

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.frontends.c.expressions.lvalues import address
from polyloom.frontends.c.scope.names import Address, Variable
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import Array, Pointer
from polyloom.scop.model import Origin


def not_null(node: c_ast.Node, state: State) -> bool | None:
    """Return what a condition is where its pointer is not NULL; None where it is no such condition."""
    if state.mode is not Mode.COMPUTE:
        return None
    match node:
        case c_ast.BinaryOp(op="==" | "!=" as op, left=left, right=right):
            pointer = right if _is_null(left) else left if _is_null(right) else None
            return op == "!=" if pointer is not None and _is_pointer(pointer, state) else None
        case _:
            return True if _is_pointer(node, state) else None


def _is_null(node: c_ast.Node) -> bool:
    match node:
        case c_ast.Cast(to_type=c_ast.Typename(type=c_ast.PtrDecl()), expr=expr):
            return _is_null(expr)
        case c_ast.Constant(type="int", value="0"):
            return True
        case _:
            return False


def _is_pointer(node: c_ast.Node, state: State) -> bool:
    """Whether an expression names a pointer; what it points to is then taken to be there."""
    if not _may_be_one(node, state):
        return False
    try:
        found = address(node, state).place.variable
    except PolyloomError:
        return False
    if isinstance(found.type, Pointer) or found.origin is Origin.ARGUMENT:
        state.present.setdefault(found, state.span(node))
    return True


def _may_be_one(node: c_ast.Node, state: State) -> bool:
    match node:
        case c_ast.ID(name=name):
            found = state.scope.find(name)
            pointer = isinstance(found, Variable) and isinstance(found.type, (Pointer, Array))
            return pointer or isinstance(found, Address)
        case c_ast.StructRef() | c_ast.ArrayRef() | c_ast.UnaryOp(op="*"):
            try:
                return isinstance(state.above.place(node, state).type, (Pointer, Array))
            except PolyloomError:
                return False
        case _:
            return False


def unused(state: State) -> tuple[Diagnostic, ...]:
    """Return an error for each pointer that is compared with NULL and of which nothing is used.

    Nothing says then that it is not NULL.
    """
    elements = (*state.elements.integers.values(), *state.elements.pointers.values())
    used = {found.place.variable for found in elements}
    used |= {found.place.variable for found in state.arrays.values()}
    missing = [(v, span) for v, span in state.present.items() if v not in used]
    helps = ["a SCoP computes with elements: `A[i]`"]
    return tuple(
        error("c-pointer", f"`{v.name}` is compared with NULL and not used", span, helps=helps)
        for v, span in missing
    )
