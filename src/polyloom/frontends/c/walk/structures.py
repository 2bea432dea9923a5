"""Structures as values: what is stored as a whole may be a place, a literal, a call or a choice of these."""

from __future__ import annotations

from pycparser import c_ast

from polyloom.frontends.c.scope.names import Defined, Scope
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import Record
from polyloom.frontends.c.syntax.faults import refuse
from polyloom.frontends.c.walk.inlining import returned_structure
from polyloom.frontends.c.walk.memberwise import by_another, copied, listed

_VALUE = "polyloom_value"


def store_whole(kind: Record, target: c_ast.Node, source: c_ast.Node, state: State) -> None:
    """Draft ``target = source`` of structures, member by member. Errors: ``c-initialiser``, ``c-record``."""
    match source:
        case c_ast.ID() | c_ast.ArrayRef() | c_ast.StructRef() | c_ast.UnaryOp(op="*"):
            state.above.walk(copied(kind, target, source, state), state)
        case c_ast.CompoundLiteral():
            state.above.walk([by_another(target, source)], state)
        case c_ast.TernaryOp(cond=condition, iftrue=then, iffalse=otherwise):
            sides = [c_ast.Assignment("=", target, side, source.coord) for side in (then, otherwise)]
            state.above.walk([c_ast.If(condition, *sides, source.coord)], state)
        case c_ast.FuncCall(name=c_ast.ID(name=name)) if _has_body(state.scope.find(name)):
            _store_returned(kind, target, source, state)
        case _:
            refuse(
                "c-record",
                f"`{state.text(source)}` is a structure of which a SCoP cannot see the members",
                state.span(source),
                helps=["places, `(T){..}` and calls of functions in this file are"],
            )


def first_whole(kind: Record, target: c_ast.ID, source: c_ast.Node, state: State) -> None:
    """Draft the first value of a structure: as ``store_whole``, or a list."""
    first = source.init if isinstance(source, c_ast.CompoundLiteral) else source
    if isinstance(first, c_ast.InitList):
        state.above.walk(listed(kind, target, first, state), state)
    else:
        store_whole(kind, target, source, state)


def _has_body(found: object) -> bool:
    return isinstance(found, Defined) and found.body is not None


def _store_returned(kind: Record, target: c_ast.Node, call: c_ast.FuncCall, state: State) -> None:
    found = state.scope.find(call.name.name)
    assert isinstance(found, Defined)
    with state.inside(Scope(state.scope)):
        state.scope.names[_VALUE] = returned_structure(found, call, state)
        state.above.walk(copied(kind, target, c_ast.ID(_VALUE, call.coord), state), state)
