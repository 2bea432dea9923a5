"""Calls of functions whose bodies are in the file: their statements take the place of the call."""

from __future__ import annotations

from pycparser import c_ast

from polyloom.frontends.c.expressions.calls import passed
from polyloom.frontends.c.expressions.lvalues import refuse_pointer, steady
from polyloom.frontends.c.expressions.memory import place_of
from polyloom.frontends.c.expressions.null_pointers import is_null, null_pointer
from polyloom.frontends.c.expressions.values import parameter_type, read, value
from polyloom.frontends.c.integers.affine import affine, fits_in
from polyloom.frontends.c.scope.conversions import stored
from polyloom.frontends.c.scope.declarations import type_of_name
from polyloom.frontends.c.scope.names import Address, Binding, Defined, Known, Place, Scope, Variable
from polyloom.frontends.c.scope.one_exit import with_one_exit
from polyloom.frontends.c.scope.state import Mode, Result, State
from polyloom.frontends.c.scope.types import INT, Array, CType, Pointer, Record, Scalar, Void
from polyloom.frontends.c.scope.writes import contains_early_return, written_names
from polyloom.frontends.c.syntax.faults import NotAffine, refuse
from polyloom.frontends.c.syntax.regions import Region
from polyloom.frontends.c.syntax.stepped_pointers import with_offsets
from polyloom.frontends.c.walk.drafting import affine_of, begin
from polyloom.frontends.c.walk.pragmas import refuse_shared
from polyloom.frontends.c.walk.structures_by_value import pointed_into, unchanged
from polyloom.ir.expressions import Expression
from polyloom.scop.model import Origin

RETURNED = "polyloom_returned"
"""The name, in the scope of a function's body, of the variable that holds what it returns."""


def inlined(found: Defined, node: c_ast.FuncCall, state: State) -> Expression | None:
    """Walk the body of a function in place of its call; return what it returns, None for ``void``.

    Errors: ``c-recursion``, ``c-call`` for a wrong number of arguments, or where it returns no number.
    """
    ctype = type_of_name(found.declaration.type, state)
    if not isinstance(ctype, (Scalar, Void)):
        refuse(
            "c-call",
            f"`{found.name}` returns no number",
            state.span(node),
            helps=["store a structure that a function returns first: `T t = f(x);`, then `t.member`"],
        )
    result = None if isinstance(ctype, Void) else _result(found, ctype, state)
    _walk_body(found, node, result, state)
    if result is None:
        return None
    known = state.fact(result.variable)
    return known.value if known is not None else read(result, node, state)


def returned_structure(found: Defined, node: c_ast.FuncCall, state: State) -> Variable:
    """Walk the body of a function in place of its call; return the variable that holds what it returns.

    Errors: those of ``inlined``, ``c-call`` where it returns no structure.
    """
    ctype = type_of_name(found.declaration.type, state)
    if not isinstance(ctype, Record):
        refuse(
            "c-call",
            f"`{found.name}` returns no structure",
            state.span(node),
            helps=["assign what it returns to a member"],
        )
    result = _result(found, ctype, state)
    _walk_body(found, node, result, state)
    return result.variable


def _walk_body(found: Defined, node: c_ast.FuncCall, result: Place | None, state: State) -> None:
    assert found.body is not None
    if found.name in state.calls:
        refuse(
            "c-recursion",
            f"`{found.name}` calls itself",
            state.span(node),
            helps=["a SCoP has loops in place of recursion"],
        )
    refuse_shared(found.body.body.block_items or [], state)
    scope = bound_scope(found, node, state)
    if result is not None:
        scope.names[RETURNED] = result.variable
    statements = list(found.body.body.block_items or [])
    if state.mode is Mode.COMPUTE:
        statements = with_one_exit(statements, None if result is None else RETURNED)
    if state.mode is Mode.COMPUTE and statements:
        whole = Region(found.body, (), tuple(statements), marked=False)
        statements = list(with_offsets(whole, unread=lambda _: True, added=False).body)
    with state.inside(scope), state.calling(found.name):
        before = dict(state.known)
        state.results.append(Result(result, state.condition))
        state.bodies.append(c_ast.Compound(statements))
        state.above.walk(statements, state)
        state.bodies.pop()
        state.results.pop()
        if contains_early_return(statements):
            state.known = {v: k for v, k in before.items() if state.known.get(v) is k}


def _result(found: Defined, ctype: Scalar | Record, state: State) -> Place:
    name = state.numbered("ret") if state.mode is Mode.TEXT else state.fresh(f"{found.name}_result")
    return place_of(Variable(found.name, name, ctype, Origin.INNER))


def take_returned(function: c_ast.FuncDef, state: State) -> None:
    """Let ``return`` store what a function returns that is a part as a whole, if that is a number.

    C knows the place by the name ``RETURNED``, which is in scope where the part stands.
    """
    ctype = type_of_name(function.decl.type.type, state)
    if isinstance(ctype, Void):
        state.results.append(Result(None))
    if isinstance(ctype, Scalar) and state.scope.outer is not None:
        variable = Variable(RETURNED, state.fresh("returned"), ctype, Origin.OUTER)
        state.scope.outer.names[RETURNED] = variable
        state.results.append(Result(place_of(variable)))


def bound_scope(found: Defined, node: c_ast.FuncCall, state: State) -> Scope:
    """Return the scope of a function's body, its parameters bound to the arguments of a call."""
    scope = Scope(state.scope.file)
    changed = written_names(found.body, scope) if found.body is not None else frozenset()
    pointed = pointed_into(node, state)
    for declaration, argument in passed(found, node, state):
        ctype = parameter_type(declaration, scope, state)
        whole = None
        if isinstance(ctype, Record) and found.body is not None and state.mode is Mode.COMPUTE:
            whole = unchanged(declaration.name, ctype, argument, found.body, pointed, state)
        scope.names[declaration.name] = whole or _bound(declaration, ctype, argument, changed, state)
    return scope


def _bound(
    declaration: c_ast.Decl, ctype: CType, argument: c_ast.Node, changed: frozenset[str], state: State
) -> Binding:
    if isinstance(ctype, (Pointer, Array)):
        null = state.mode is Mode.COMPUTE and is_null(argument)
        if null:
            return null_pointer(declaration.name, ctype, argument, state)
        return _pointer(argument, ctype, state)
    if isinstance(ctype, Record):
        return _copy_of(argument, declaration.name, ctype, state)
    if not isinstance(ctype, Scalar):
        refuse_pointer(argument, state)
    if state.mode is Mode.COMPUTE and declaration.name not in changed:
        constant = _constant(declaration, ctype, argument, state)
        if constant is not None:
            return constant
    source = value(argument, state)
    variable = Variable(declaration.name, state.local(declaration.name), ctype, Origin.INNER)
    target = place_of(variable)
    found = affine_of(argument, target, state)
    begin(target, source, None if found is None else Known(found, source), argument, state)
    return variable


_ARGUMENT = "polyloom_argument"


def _copy_of(argument: c_ast.Node, name: str, kind: Record, state: State) -> Variable:
    """Return a structure that a function is given by value."""
    variable = Variable(name, state.local(name), kind, Origin.INNER)
    with state.inside(Scope(state.scope)):
        state.scope.names[_ARGUMENT] = variable
        at = argument.coord
        state.above.walk([c_ast.Assignment("=", c_ast.ID(_ARGUMENT, at), argument, at)], state)
    return variable


def _constant(declaration: c_ast.Decl, ctype: Scalar, argument: c_ast.Node, state: State) -> Variable | None:
    """Return a variable that needs no memory: an affine argument that the function does not change."""
    if ctype.boolean or ctype.element.is_float:
        return None
    try:
        found = affine(argument, state)
    except NotAffine:
        return None
    if not fits_in(found, ctype.element, state):
        return None
    variable = Variable(declaration.name, declaration.name, ctype, Origin.INNER)
    state.known[variable] = Known(found, stored(value(argument, state), ctype))
    return variable


def _pointer(argument: c_ast.Node, ctype: CType, state: State) -> Address:
    """Return a pointer argument; in the text's form the indices of a variable element are statements."""
    found = steady(argument, ctype, state)
    if state.mode is Mode.TEXT:
        for index in found.place.indices[: _said(argument)]:
            name = state.numbered("arg")
            target = place_of(Variable(name, name, INT, Origin.INNER))
            begin(target, index.value, None, argument, state)
    return found


def _said(argument: c_ast.Node) -> int:
    """Return how many subscripts an argument spells out."""
    while isinstance(argument, (c_ast.Cast, c_ast.UnaryOp)):
        argument = argument.expr
    count = 0
    while isinstance(argument, (c_ast.ArrayRef, c_ast.StructRef)):
        count += isinstance(argument, c_ast.ArrayRef)
        argument = argument.name
    return count
