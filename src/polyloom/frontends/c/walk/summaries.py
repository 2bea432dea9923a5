"""Calls as one statement: what they read and write, from the function's body or its prototype.

A function without a body reads what it is given and writes what it is given by a pointer that is not
``const``.
Not in the papers; as in pet.
"""

from __future__ import annotations

from dataclasses import replace

from pycparser import c_ast

from polyloom.diagnostics import PolyloomError, error
from polyloom.frontends.c.expressions.lvalues import is_pointer, place
from polyloom.frontends.c.expressions.memory import accessed
from polyloom.frontends.c.expressions.values import value
from polyloom.frontends.c.integers.relations import positions, reference, without
from polyloom.frontends.c.scope.declarations import elements_are_const, type_of_name
from polyloom.frontends.c.scope.drafts import Access, Draft, Touched
from polyloom.frontends.c.scope.functions import function_names
from polyloom.frontends.c.scope.names import Address, Defined, Place
from polyloom.frontends.c.scope.state import Mode, Result, State
from polyloom.frontends.c.scope.types import INT, Scalar
from polyloom.frontends.c.syntax.faults import did_you_mean
from polyloom.frontends.c.walk.inlining import bound_scope
from polyloom.ir.expressions import Constant, Expression, Read, walk


def summarised(found: Defined | None, node: c_ast.FuncCall, state: State) -> Expression:
    """Remember what a call touches and that it cannot be computed; return a value that stands for its own."""
    if found is None or found.body is None or not _from_body(found, node, state):
        _from_prototype(found, node, state)
    name = state.text(node.name)
    state.touched.refused.append(
        error(
            "c-call",
            f"`{name}` is a function that Polyloom does not know",
            state.span(node),
            notes=["what it does cannot be seen"],
            helps=[
                *did_you_mean(name, [*state.scope.names_around(), *function_names()]),
                "define it in this file, so that it can be inlined; of the library math.h is known",
            ],
        )
    )
    ctype = type_of_name(found.declaration.type, state) if found is not None else INT
    return Constant(0, ctype.element if isinstance(ctype, Scalar) else INT.element)


def _from_prototype(found: Defined | None, node: c_ast.FuncCall, state: State) -> None:
    arguments = list(node.args.exprs) if node.args is not None else []
    listed = found.declaration.args.params if found is not None and found.declaration.args else []
    for k, argument in enumerate(arguments):
        constant = k < len(listed) and _is_const(listed[k])
        _touch(argument, state, constant=constant)


def _is_const(parameter: c_ast.Node) -> bool:
    kind = parameter.type if isinstance(parameter, (c_ast.Decl, c_ast.Typename)) else None
    return elements_are_const(kind, pointed=True)


def _touch(argument: c_ast.Node, state: State, *, constant: bool) -> None:
    """Remember what a function may do with an argument; texts are none of a SCoP's data."""
    if isinstance(argument, c_ast.Constant) and argument.type == "string":
        return
    if not is_pointer(argument, state):
        expression = value(argument, state)
        state.touched.reads += [p.position for p in walk(expression) if isinstance(p, Read)]
        return
    position = accessed(_pointed(argument, state), state, state.span(argument), records=True)
    state.touched.reads.append(position)
    if not constant:
        state.touched.writes.append(position)


def _pointed(argument: c_ast.Node, state: State) -> Place:
    """Return what a pointer lets a function reach: an element, a row, an array."""
    match argument:
        case c_ast.Cast(expr=expr):
            return _pointed(expr, state)
        case c_ast.UnaryOp(op="&", expr=expr):
            return place(expr, state)
        case c_ast.ID(name=name) if isinstance(found := state.scope.find(name), Address):
            return found.place
        case _:
            return place(argument, state)


def _from_body(found: Defined, node: c_ast.FuncCall, state: State) -> bool:
    """Remember what the statements of a function touch; return whether they could be read."""
    inner = replace(
        state,
        mode=Mode.COMPUTE,
        drafts=[],
        frames=[],
        position=[0],
        known=dict(state.known),
        unusable=dict(state.unusable),
        taken=set(state.taken),
        arrays=dict(state.arrays),
        array_names=dict(state.array_names),
        refused=[],
        touched=Touched(),
        results=[Result(None)],
        calls=[*state.calls, found.name],
        condition=None,
    )
    try:
        inner.scope = bound_scope(found, node, inner)
        assert found.body is not None
        inner.above.walk(found.body.body.block_items or [], inner)
    except PolyloomError:
        return False
    if inner.refused:
        return False
    for draft in inner.drafts:
        _take_over(draft, inner, state)
    return True


def _take_over(draft: Draft, inner: State, state: State) -> None:
    """Remember what a statement of a function touches of the caller's."""
    for position in (*positions(draft, inner), *draft.reads):
        state.touched.reads += _outside(position, draft, inner, state)
    targets = () if draft.target is None else (draft.target,)
    for position in (*targets, *draft.writes):
        found = _outside(position, draft, inner, state)
        state.touched.writes += found
        exact = all(index.affine is not None for index in inner.pool[position].indices)
        if position in (*targets, *draft.must) and exact and draft.condition is None:
            state.touched.must += found


def _outside(position: int, draft: Draft, inner: State, state: State) -> list[int]:
    """Return a reference, for all iterations inside the function, if it is to something of the caller's."""
    access = inner.pool[position]
    array = inner.arrays[access.array]
    if array.place.variable.unique not in state.taken:
        return []
    state.arrays.setdefault(array.name, array)
    state.array_names.setdefault((array.place.variable, array.place.members), array.name)
    points = draft.domain.intersect(access.within)
    relation = without(reference(access).intersect_domain(points), draft.frames)
    state.pool.append(Access(access.array, (), state.path, access.span, 0, relation.coalesce()))
    return [len(state.pool) - 1]
