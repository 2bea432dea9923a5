"""Lvalues of C as places in memory, pointers as addresses, subscripts as indices. Source: ISO C99, 6.5."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from pycparser import c_ast

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.c.expressions.constant_places import integer_at, pointer_at
from polyloom.frontends.c.expressions.memory import decayed, member, moved, place_of
from polyloom.frontends.c.integers.affine import subscript_value
from polyloom.frontends.c.integers.extents import extent_of
from polyloom.frontends.c.scope.conversions import (
    negated,
)
from polyloom.frontends.c.scope.declarations import type_of_name
from polyloom.frontends.c.scope.names import (
    Address,
    Index,
    Known,
    Place,
    Variable,
)
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import Array, CType, Pointer, Record, Void, is_same, spelling
from polyloom.frontends.c.scope.writes import contains
from polyloom.frontends.c.syntax.faults import NotAffine, refuse
from polyloom.ir.expressions import Read, walk


def refuse_pointer(node: c_ast.Node, state: State) -> NoReturn:
    """Refuse a pointer as a value."""
    refuse(
        "c-pointer",
        f"`{state.text(node)}` is a pointer, used as a value",
        state.span(node),
        helps=["a SCoP computes with elements: `A[i]`"],
    )


def index(node: c_ast.Node, state: State) -> Index:
    """Return a subscript, affine or not."""
    try:
        with state.plain_arithmetic():
            found = subscript_value(node, state)
    except NotAffine as fault:
        return Index(None, state.above.value(node, state), fault.reason, fault.span)
    return Index(found, state.above.value(node, state))


def place(node: c_ast.Node, state: State) -> Place:
    """Return the place that an lvalue names. Errors: ``c-lvalue``, ``c-pointer``, ``c-member``."""
    match node:
        case c_ast.ID(name=name):
            found = state.scope.find(name)
            if isinstance(found, Variable):
                return place_of(found)
            if found is None:
                state.above.value(node, state)
        case c_ast.ArrayRef(name=base, subscript=subscript):
            return moved(address(base, state), index(subscript, state), state.span(node)).place
        case c_ast.StructRef(name=base, type=".", field=field):
            return member(_complete(place(base, state), state), field.name, state.span(node))
        case c_ast.StructRef(name=base, type="->", field=field):
            return member(_complete(address(base, state).place, state), field.name, state.span(node))
        case c_ast.UnaryOp(op="*", expr=expr):
            return address(expr, state).place
        case _:
            pass
    return refuse(
        "c-lvalue",
        f"`{state.text(node)}` is no place in memory that a SCoP can name",
        state.span(node),
        helps=["scalars, array elements and members of structures are; name what a call returns first"],
    )


def _complete(found: Place, state: State) -> Place:
    """Return a place with the members of its structure: a pointer to it may stand before its definition."""
    if isinstance(found.type, Record) and not found.type.members:
        return replace(found, type=state.scope.record(found.type.name) or found.type)
    return found


def address(node: c_ast.Node, state: State) -> Address:
    """Return a pointer's value. Errors: ``c-pointer``, ``c-cast``."""
    match node:
        case c_ast.ID(name=name) if isinstance(found := state.scope.find(name), Address):
            return _by_pointer(found)
        case c_ast.UnaryOp(op="&", expr=expr):
            target = place(expr, state)
            return _by_pointer(Address(target, steps=target.levels[-1] > 0))
        case c_ast.BinaryOp(op="+" | "-" as op, left=left, right=right):
            return _by_pointer(_pointer_sum(op, left, right, node, state))
        case c_ast.Cast(expr=expr, to_type=to_type) if isinstance(
            ctype := type_of_name(to_type, state, extent_of), Pointer
        ):
            return _by_pointer(seen_as(ctype, address(expr, state), node, state))
        case c_ast.ID() | c_ast.ArrayRef() | c_ast.StructRef() | c_ast.UnaryOp(op="*"):
            target = place(node, state)
            found_address = decayed(target)
            if found_address is not None:
                return found_address
            if isinstance(target.type, Pointer):
                return _stored(target, node, state)
        case _:
            pass
    return refuse(
        "c-pointer",
        f"`{state.text(node)}` is no pointer into an array of the SCoP",
        state.span(node),
        helps=["index an array, a parameter, or the address of an element"],
    )


def _by_pointer(found: Address) -> Address:
    return replace(found, place=replace(found.place, by_pointer=True))


def seen_as(ctype: CType, found: Address, node: c_ast.Node, state: State) -> Address:
    """Return a pointer as one of type ``ctype``: to the same elements, or to the first of an array of them.

    Errors: ``c-cast`` where it points to elements of another type, or to rows of another length.
    """
    target = (
        ctype.target if isinstance(ctype, Pointer) else ctype.element if isinstance(ctype, Array) else None
    )
    if target is None or isinstance(target, Void):
        return found
    inner: Address | None = found
    while inner is not None and not is_same(inner.place.type, target):
        inner = decayed(inner.place) if isinstance(inner.place.type, Array) else None
    return inner or _refuse_view(found, target, node, state)


def _refuse_view(found: Address, target: CType, node: c_ast.Node, state: State) -> NoReturn:
    there, wanted = spelling(found.place.type), spelling(target)
    rows = ", in rows of another length" if there == wanted else ""
    refuse(
        "c-cast",
        f"`{state.text(node)}` is a pointer to `{there}` that is used as one to `{wanted}`{rows}",
        state.span(node),
        notes=["a SCoP's arrays are made of elements of one type, and of rows of one length"],
        helps=["declare the array as it is used, or give it as an argument of its own"],
    )


def _stored(target: Place, node: c_ast.Node, state: State) -> Address:
    """Return a pointer that memory holds, and that stays as it is. Errors: ``c-pointer`` for others."""
    found = pointer_at(target, state)
    pointed = None if found is None else decayed(place_of(found))
    return pointed if pointed is not None else _refuse_stored(node, state)


def staying(node: c_ast.Node, state: State) -> Known | None:
    """Return the parameter that an integer in memory is; None where it is data."""
    if any(contains(n, _READING) is not None for n in _subscripts(node)):
        return None
    named = isinstance(node, (c_ast.StructRef, c_ast.UnaryOp))
    try:
        return integer_at(place(node, state), state, wanted=state.heading or (state.assuming and named))
    except PolyloomError:
        return None


_READING = (c_ast.ArrayRef, c_ast.StructRef, c_ast.FuncCall, c_ast.UnaryOp, c_ast.TernaryOp)
"""What a subscript is not made of where it can be a constant without reading memory."""


def _subscripts(node: c_ast.Node) -> list[c_ast.Node]:
    """Return the subscripts of an lvalue, and what is added to pointers in it."""
    match node:
        case c_ast.ArrayRef(name=base, subscript=subscript):
            return [*_subscripts(base), subscript]
        case c_ast.StructRef(name=base) | c_ast.UnaryOp(expr=base) | c_ast.Cast(expr=base):
            return _subscripts(base)
        case c_ast.BinaryOp(left=left, right=right):
            return [left, right]
        case _:
            return []


def _refuse_stored(node: c_ast.Node, state: State) -> NoReturn:
    refuse(
        "c-pointer",
        f"`{state.text(node)}` is a pointer that is read from memory",
        state.span(node),
        notes=["where it points is not known, nor whether two of them point to one place"],
        helps=["use an array of two dimensions: `double A[n][m]`, or `double (*A)[m]`"],
    )


def _pointer_sum(op: str, left: c_ast.Node, right: c_ast.Node, node: c_ast.Node, state: State) -> Address:
    if op == "+" and not is_pointer(left, state):
        left, right = right, left
    by = index(right, state)
    if op == "-":
        by = Index(None if by.affine is None else by.affine.neg(), negated(by.value), by.reason, by.span)
    return moved(address(left, state), by, state.span(node))


def is_pointer(node: c_ast.Node, state: State) -> bool:
    """Whether an expression is a pointer or an array."""
    match node:
        case c_ast.ID(name=name):
            found = state.scope.find(name)
            return isinstance(found, Address) or (
                isinstance(found, Variable) and isinstance(found.type, (Array, Pointer))
            )
        case c_ast.ArrayRef() | c_ast.StructRef() | c_ast.UnaryOp(op="*"):
            return isinstance(place(node, state).type, (Array, Pointer))
        case c_ast.UnaryOp(op="&"):
            return True
        case c_ast.Cast(to_type=to_type):
            return isinstance(type_of_name(to_type, state), (Array, Pointer))
        case c_ast.BinaryOp(op="+" | "-", left=left, right=right):
            return is_pointer(left, state) or is_pointer(right, state)
        case _:
            return False


def steady(node: c_ast.Node, ctype: CType, state: State) -> Address:
    """Return the value of a pointer of type ``ctype`` that is kept under another name.

    Data must not decide where it points. Errors: ``c-pointer``, ``c-cast``.
    """
    found = seen_as(ctype, address(node, state), node, state)
    if any(isinstance(part, Read) for index in found.place.indices for part in walk(index.value)):
        refuse(
            "c-pointer",
            f"`{state.text(node)}` points to an element that depends on data",
            state.span(node),
            helps=["give the array and the index apart"],
        )
    return found
