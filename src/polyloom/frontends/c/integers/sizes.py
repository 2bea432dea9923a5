"""``sizeof``. Source: ISO C99, 6.5.3.4."""

from __future__ import annotations

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.c.integers.extents import extent_of
from polyloom.frontends.c.scope.declarations import type_of_name
from polyloom.frontends.c.scope.layout import POINTER
from polyloom.frontends.c.scope.names import Address
from polyloom.frontends.c.scope.sets import constant_affine
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import Array, CType, Pointer, Scalar
from polyloom.frontends.c.syntax.faults import refuse
from polyloom.scop.model import Origin


def size_of(node: c_ast.Node, state: State) -> isl.PwAff:
    """Return the bytes of a type, or of what an lvalue names, over the parameters. Errors: ``c-sizeof``."""
    size = _pointer_size(node, state) or _size(_type_of(node, state))
    if size is not None:
        return size
    return refuse(
        "c-sizeof",
        f"the size of `{state.text(node)}` is not known",
        state.span(node),
        helps=["`sizeof` of numbers, and of arrays and pointers of them, can be used in a SCoP"],
    )


def _pointer_size(node: c_ast.Node, state: State) -> isl.PwAff | None:
    """Return the size of a name that is a pointer: an argument ``double a[9]`` is one."""
    found = state.scope.find(node.name) if isinstance(node, c_ast.ID) else None
    of_array = not isinstance(found, Address) and isinstance(getattr(found, "type", None), Array)
    argument = of_array and getattr(found, "origin", None) is Origin.ARGUMENT
    return constant_affine(POINTER) if argument or isinstance(found, Address) else None


def _type_of(node: c_ast.Node, state: State) -> CType | None:
    if isinstance(node, c_ast.Typename):
        return type_of_name(node, state, extent_of)
    try:
        return state.above.place(node, state).type
    except PolyloomError:
        return None


def _size(ctype: CType | None) -> isl.PwAff | None:
    match ctype:
        case Scalar(element=element):
            return constant_affine(element.size)
        case Pointer():
            return constant_affine(POINTER)
        case Array(element=element_type, extent=extent) if extent is not None and extent.affine is not None:
            inner = _size(element_type)
            if inner is None or not (inner.is_cst() or extent.affine.is_cst()):
                return None
            return extent.affine.mul(inner)
        case _:
            return None
