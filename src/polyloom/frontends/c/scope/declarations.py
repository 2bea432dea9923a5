"""Declarations: types from syntax, structures, enumerations, and names brought into a scope."""

from __future__ import annotations

from collections.abc import Callable

from pycparser import c_ast

from polyloom.frontends.c.scope.names import EnumConstant, TypeName
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import (
    ATOMIC,
    ATTRIBUTED,
    BIT_FIELDS,
    ENUMERATION,
    FLEXIBLE,
    VOLATILE,
    Array,
    CType,
    Extent,
    Function,
    Pointer,
    Record,
    Void,
    scalar_named,
)
from polyloom.frontends.c.syntax.attributes import MARK
from polyloom.frontends.c.syntax.faults import refuse

Extents = Callable[[c_ast.Node, State], Extent]
"""How the extent of an array is evaluated; apart, since expressions hold casts, and so types."""

INTEGERS = ["char", "short", "int", "long, and their unsigned forms", "float", "double", "_Bool"]


def type_of_name(node: c_ast.Node, state: State, extents: Extents | None = None) -> CType:
    """Return the type that a declaration or type name describes.

    Without ``extents``, arrays have none. Errors: ``c-type``.
    """
    match node:
        case c_ast.Decl(type=inner) | c_ast.Typename(type=inner) | c_ast.Typedef(type=inner):
            return type_of_name(inner, state, extents)
        case c_ast.TypeDecl(quals=quals) | c_ast.PtrDecl(quals=quals) if "volatile" in (quals or ()):
            return VOLATILE
        case c_ast.TypeDecl(quals=quals) | c_ast.PtrDecl(quals=quals) if "_Atomic" in (quals or ()):
            return ATOMIC
        case c_ast.TypeDecl(quals=quals) if "restrict" in (quals or ()):
            return ATTRIBUTED
        case c_ast.ArrayDecl(dim=c_ast.ID(name=name)) if name == MARK:
            return ATTRIBUTED
        case c_ast.TypeDecl(type=inner):
            return type_of_name(inner, state, extents)
        case c_ast.PtrDecl(type=inner, quals=quals):
            target = type_of_name(inner, state, extents)
            return Pointer(target, "restrict" in (quals or []), elements_are_const(inner, pointed=True))
        case c_ast.ArrayDecl(type=inner, dim=dim, dim_quals=quals):
            size = extents(dim, state) if dim is not None and extents is not None else None
            return Array(type_of_name(inner, state, extents), size, "restrict" in (quals or []))
        case c_ast.FuncDecl(type=inner):
            return Function(type_of_name(inner, state))
        case c_ast.IdentifierType(names=names):
            return _named(list(names), node, state)
        case c_ast.Struct() | c_ast.Union():
            return _record(node, state, extents)
        case c_ast.Enum(name=tag, values=None):
            return state.scope.enumeration(tag) or ENUMERATION
        case c_ast.Enum(values=members):
            first = state.scope.find(members.enumerators[0].name)
            return first.enumeration if isinstance(first, EnumConstant) else ENUMERATION
        case _:
            return refuse(
                "c-type",
                f"`{state.text(node)}` is no type that a SCoP can use",
                state.span(node),
                helps=[f"there are {', '.join(INTEGERS)}, arrays, pointers and structures of them"],
            )


def _named(names: list[str], node: c_ast.Node, state: State) -> CType:
    if names == ["void"]:
        return Void()
    if len(names) == 1 and isinstance(found := state.scope.find(names[0]), TypeName):
        return found.type
    scalar = scalar_named(names)
    if scalar is not None and not (names.count("long") and "double" in names):
        return scalar
    return refuse(
        "c-type",
        f"`{' '.join(names)}` is no type that Polyloom computes with",
        state.span(node),
        helps=[f"there are {', '.join(INTEGERS)}"],
    )


def _record(node: c_ast.Struct | c_ast.Union, state: State, extents: Extents | None) -> Record:
    """Return a structure; where it is defined here, its tag is known from now on."""
    name = node.name or ""
    if node.decls is None:
        return state.scope.record(name) or Record(name, ())
    members: list[tuple[str, CType]] = []
    for declaration in node.decls:
        if not isinstance(declaration, c_ast.Decl):
            continue
        ctype = type_of_name(declaration, state, extents)
        if declaration.name is None and isinstance(ctype, Record):
            members += () if ctype.union else ctype.members  # those of a union share their memory
        elif declaration.name is not None:
            open_ended = declaration is node.decls[-1] and _is_open(declaration.type)
            special = BIT_FIELDS if declaration.bitsize is not None else FLEXIBLE if open_ended else None
            members.append((declaration.name, special or ctype))
    record = Record(name, tuple(members), isinstance(node, c_ast.Union))
    if name:
        state.scope.records[name] = record
    return record


def _is_open(kind: c_ast.Node) -> bool:
    """Whether a last member, ``d[]``, ``d[0]`` or ``d[1]``, has as many elements as there is memory."""
    match kind:
        case c_ast.ArrayDecl(dim=None) | c_ast.ArrayDecl(dim=c_ast.Constant(value="0" | "1")):
            return True
        case _:
            return False


def elements_are_const(kind: c_ast.Node | None, *, pointed: bool) -> bool:
    """Whether a declared type is of elements that are ``const``; ``pointed``: also those behind pointers."""
    around = (c_ast.PtrDecl, c_ast.ArrayDecl) if pointed else (c_ast.ArrayDecl,)
    while isinstance(kind, around):
        kind = kind.type
    return isinstance(kind, c_ast.TypeDecl) and "const" in (kind.quals or [])
