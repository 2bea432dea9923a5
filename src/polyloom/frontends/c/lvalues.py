"""Lvalues of C as places in memory, pointers as addresses, subscripts as indices. Source: ISO C99, 6.5."""

from __future__ import annotations

from typing import NoReturn

from pycparser import c_ast

from polyloom.frontends.c.affine import affine
from polyloom.frontends.c.c_types import Array, Pointer
from polyloom.frontends.c.convert import (
    negated,
)
from polyloom.frontends.c.declarations import type_of_name
from polyloom.frontends.c.faults import NotAffine, refuse
from polyloom.frontends.c.memory import decayed, member, moved, place_of
from polyloom.frontends.c.names import (
    Address,
    Index,
    Place,
    Variable,
)
from polyloom.frontends.c.state import State
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
            found = affine(node, state)
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
            return member(place(base, state), field.name, state.span(node))
        case c_ast.StructRef(name=base, type="->", field=field):
            return member(address(base, state).place, field.name, state.span(node))
        case c_ast.UnaryOp(op="*", expr=expr):
            return address(expr, state).place
        case _:
            pass
    return refuse(
        "c-lvalue",
        f"`{state.text(node)}` is no place in memory that a SCoP can name",
        state.span(node),
        helps=["scalars, array elements and members of structures are"],
    )


def address(node: c_ast.Node, state: State) -> Address:
    """Return a pointer's value. Errors: ``c-pointer``."""
    match node:
        case c_ast.ID(name=name) if isinstance(found := state.scope.find(name), Address):
            return found
        case c_ast.UnaryOp(op="&", expr=expr):
            target = place(expr, state)
            return Address(target, steps=target.levels[-1] > 0)
        case c_ast.BinaryOp(op="+" | "-" as op, left=left, right=right):
            return _pointer_sum(op, left, right, node, state)
        case c_ast.Cast(expr=expr, to_type=to_type) if isinstance(type_of_name(to_type, state), Pointer):
            return address(expr, state)
        case c_ast.ID() | c_ast.ArrayRef() | c_ast.StructRef() | c_ast.UnaryOp(op="*"):
            target = place(node, state)
            found_address = decayed(target)
            if found_address is not None:
                return found_address
            if isinstance(target.type, Pointer):
                _refuse_stored(node, state)
        case _:
            pass
    return refuse(
        "c-pointer",
        f"`{state.text(node)}` is no pointer into an array of the SCoP",
        state.span(node),
        helps=["index an array, a parameter, or the address of an element"],
    )


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


def steady(node: c_ast.Node, state: State) -> Address:
    """Return a pointer's value that is kept under another name; data must not decide where it points.

    Errors: ``c-pointer``.
    """
    found = address(node, state)
    if any(isinstance(part, Read) for index in found.place.indices for part in walk(index.value)):
        refuse(
            "c-pointer",
            f"`{state.text(node)}` points to an element that depends on data",
            state.span(node),
            helps=["give the array and the index apart"],
        )
    return found
