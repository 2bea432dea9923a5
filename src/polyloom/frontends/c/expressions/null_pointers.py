"""Conditions on pointers alone: ``p != NULL``, ``!p``, ``if (p)``.

A pointer that the part uses is taken not to be NULL; whoever calls the part has to look first. One that an
inlined function is given as a constant is NULL. Source of what such conditions mean: ISO C99, 6.5.9, 6.3.2.3.
"""

from __future__ import annotations

from collections.abc import Collection

from pycparser import c_ast

from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.frontends.c.expressions.lvalues import address
from polyloom.frontends.c.expressions.memory import decayed, place_of
from polyloom.frontends.c.scope.names import Address, Variable
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import Array, Pointer
from polyloom.scop.model import Origin


def not_null(node: c_ast.Node, state: State) -> bool | None:
    """Return what a condition on a pointer is; None where it is no such condition."""
    if state.mode is not Mode.COMPUTE:
        return None
    match node:
        case c_ast.BinaryOp(op="==" | "!=" as op, left=left, right=right):
            pointer = right if is_null(left) else left if is_null(right) else None
            there = None if pointer is None else _is_there(pointer, state)
            return None if there is None else there is (op == "!=")
        case _:
            return _is_there(node, state)


def is_null(node: c_ast.Node) -> bool:
    """Whether an expression is a null pointer constant: ``NULL``, ``0``, ``(float *)0``."""
    match node:
        case c_ast.Cast(to_type=c_ast.Typename(type=c_ast.PtrDecl()), expr=expr):
            return is_null(expr)
        case c_ast.Constant(type="int", value="0"):
            return True
        case _:
            return False


def null_pointer(name: str, kind: Pointer | Array, at: c_ast.Node, state: State) -> Address:
    """Return a pointer of a type that is NULL; what it points to is no array of the part."""
    variable = Variable(name, state.local(name), kind, Origin.INNER, span=state.span(at))
    state.nulls.add(variable)
    found = decayed(place_of(variable))
    assert found is not None
    return found


def _is_there(node: c_ast.Node, state: State) -> bool | None:
    """Whether a pointer is not NULL, which is taken for granted; None of what is none."""
    if not _may_be_one(node, state):
        return None
    try:
        found = address(node, state).place.variable
    except PolyloomError:
        return None
    if found in state.nulls:
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


def dereferenced(names: Collection[str], state: State) -> tuple[Diagnostic, ...]:
    """Return an error for each of these arrays that a pointer that is NULL points to."""
    found = dict.fromkeys(state.arrays[n].place.variable for n in names if n in state.arrays)
    return tuple(
        error("c-pointer", f"`{v.name}` is NULL here, and is used", v.span, helps=["give it an array"])
        for v in found
        if v in state.nulls
    )
