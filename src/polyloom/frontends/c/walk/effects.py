"""Statements that change memory: assignments, calls, jumps; and declarations with their first values."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
from pycparser import c_ast

from polyloom.frontends.c.expressions.lvalues import place, steady
from polyloom.frontends.c.expressions.memory import place_of, refuse_unmodelled
from polyloom.frontends.c.expressions.values import call, combined, read, value
from polyloom.frontends.c.integers.enumerations import enumerate_members
from polyloom.frontends.c.integers.extents import extent_of
from polyloom.frontends.c.scope.declarations import elements_are_const, type_of_name
from polyloom.frontends.c.scope.drafts import Stops
from polyloom.frontends.c.scope.names import Known, Place, TypeName, Variable
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import Array, Pointer, Record, Scalar
from polyloom.frontends.c.syntax.faults import refuse
from polyloom.frontends.c.syntax.places import name_of
from polyloom.frontends.c.walk.drafting import affine_of, begin, draft, write
from polyloom.frontends.c.walk.initialisers import assignments
from polyloom.frontends.c.walk.inlining import RETURNED
from polyloom.frontends.c.walk.pragmas import assume
from polyloom.frontends.c.walk.structures import first_whole, store_whole
from polyloom.ir.expressions import Expression
from polyloom.scop.model import Origin


def jump(node: c_ast.Node, word: str, state: State, around: Expression | None = None) -> isl.Set:
    """Return where a ``break``, ``continue`` or ``return`` is reached; it must not depend on data.

    ``around``: the condition on data under which what it leaves is called.
    """
    if state.condition is not around:
        refuse(
            "c-data-jump",
            f"`{word}` depends on data",
            state.span(node),
            helps=[
                "a SCoP leaves a loop under affine conditions only; a condition on data may guard a statement"
            ],
        )
    return state.path


def effect(node: c_ast.Node, state: State, label: str | None) -> None:
    """Draft a statement that is an expression. Errors: ``Unsupported`` for what no SCoP has."""
    match node:
        case c_ast.Assignment():
            assign(node, state, label)
        case c_ast.UnaryOp(op="++" | "p++" | "--" | "p--" as op, expr=expr):
            one = c_ast.Constant("int", "1", node.coord)
            _compound(op.strip("p")[0], expr, one, node, state, label)
        case c_ast.Cast(expr=expr):
            effect(expr, state, label)
        case c_ast.ID() | c_ast.Constant() | c_ast.BinaryOp():
            value(node, state)
        case c_ast.While() | c_ast.DoWhile():
            refuse(
                "c-while",
                f"{name_of(node)} has no iteration domain that is known before it runs",
                state.span(node),
                helps=[
                    "write `for (i = first; i < last; i++)` with affine bounds",
                    "`explain`, `run`, `compile` take loops that data end, if they store to variables alone",
                ],
            )
        case c_ast.FuncCall(name=c_ast.ID(name="__pencil_assume"), args=args):
            assume(args.exprs[0], node, state)
        case c_ast.FuncCall(name=c_ast.ID(name="__pencil_kill")):
            pass
        case c_ast.FuncCall():
            _call(node, state, label)
        case _:
            refuse(
                "c-statement",
                f"{name_of(node)} cannot stand in a SCoP",
                state.span(node),
                helps=["`for`, `if`, assignments, declarations and calls of functions in this file can"],
            )


def _call(node: c_ast.FuncCall, state: State, label: str | None) -> None:
    """Walk a call whose value is not used: a statement of its own, unless its statements took its place.

    Those of calls in its arguments, ``report(total(x))``, did not.
    """
    call(node, state)
    if state.touched.refused:
        draft(None, None, node, state, label)


def leave(node: c_ast.Return, state: State) -> Stops:
    """Draft what a function that is inlined returns. Errors: ``c-return`` in the SCoP itself."""
    if not state.results:
        refuse(
            "c-return",
            "`return` inside a SCoP",
            state.span(node),
            helps=["put `#pragma scop` and `#pragma endscop` around the loops, and return after them"],
        )
    result = state.results[-1]
    stops = Stops(returns=jump(node, "return", state, result.condition))
    target = result.place
    if node.expr is not None and target is not None and isinstance(target.type, Record):
        store_whole(target.type, c_ast.ID(RETURNED, node.coord), node.expr, state)
    elif node.expr is not None and target is not None:
        source = value(node.expr, state)
        found = affine_of(node.expr, target, state) if state.mode is Mode.COMPUTE else None
        begin(target, source, None if found is None else Known(found, source), node, state)
    elif node.expr is not None:
        draft(None, value(node.expr, state), node, state, None)
    return stops


def assign(node: c_ast.Assignment, state: State, label: str | None = None) -> Place:
    """Draft an assignment, after those inside it (``a = b = e``); return its target."""
    if node.op != "=":
        return _compound(node.op[:-1], node.lvalue, node.rvalue, node, state, label)
    if isinstance(node.rvalue, c_ast.Assignment):
        inner = assign(node.rvalue, state)
        if isinstance(inner.type, Record):
            return assign(c_ast.Assignment("=", node.lvalue, node.rvalue.lvalue, node.coord), state)
        target = place(node.lvalue, state)
        known = state.fact(inner.variable) if not inner.members and not inner.indices else None
        source = known.value if known is not None else read(inner, node.rvalue.lvalue, state)
        write(target, source, known if isinstance(known, Known) else None, node, state, label)
        return target
    target = place(node.lvalue, state)
    if isinstance(target.type, Record):
        store_whole(target.type, node.lvalue, node.rvalue, state)
        return target
    source = value(node.rvalue, state)
    found = affine_of(node.rvalue, target, state)
    write(target, source, None if found is None else Known(found, source), node, state, label)
    return target


def _compound(
    op: str, left: c_ast.Node, right: c_ast.Node, node: c_ast.Node, state: State, label: str | None
) -> Place:
    """Draft ``left op= right``. In the text's form memory is read also where the value is known."""
    target = place(left, state)
    by = value(right, state)
    found = affine_of(c_ast.BinaryOp(op, left, right, node.coord), target, state)
    known = None
    if found is not None:
        known = Known(found, combined(op, value(left, state), by, node, state))
    before = value(left, state) if state.mode is Mode.COMPUTE else read(target, left, state)
    result = combined(op, before, by, node, state)
    write(target, result, known, node, state, label)
    return target


def declare(node: c_ast.Node, state: State) -> None:
    """Bring a declared name into the scope; its initial value is an assignment."""
    enumerate_members(node, state)
    ctype = type_of_name(node, state, extent_of)
    if isinstance(node, c_ast.Typedef):
        state.scope.names[node.name] = TypeName(ctype)
        return
    assert isinstance(node, c_ast.Decl)
    if node.name is None:
        return
    is_table = node.init is not None and elements_are_const(node.type, pointed=False)
    if "static" in (node.storage or []) and not is_table:
        refuse(
            "c-static",
            f"`{node.name}` is a static variable inside a SCoP, which keeps its value from call to call",
            state.span(node),
            helps=["declare it outside, or as `static const`"],
        )
    if isinstance(ctype, Pointer) and node.init is not None:
        state.scope.names[node.name] = steady(node.init, ctype, state)
        return
    constant = "const" in (node.quals or [])
    variable = Variable(node.name, state.local(node.name), ctype, Origin.INNER, constant, state.span(node))
    if node.init is not None and isinstance(ctype, Array):
        state.scope.names[node.name] = replace(variable, constant=False)
        state.above.walk(assignments(node, ctype, state), state)
        return
    if node.init is not None and isinstance(ctype, Record):
        state.scope.names[node.name] = replace(variable, constant=False)
        first_whole(ctype, c_ast.ID(node.name, node.coord), node.init, state)
        return
    initial = None if node.init is None else _initial(variable, node.init, state)
    state.scope.names[node.name] = variable
    if initial is not None:
        begin(place_of(variable), *initial, node, state)


def _initial(variable: Variable, node: c_ast.Node, state: State) -> tuple[Expression, Known | None]:
    refuse_unmodelled(place_of(variable), state.span(node))
    if not isinstance(variable.type, Scalar):
        refuse(
            "c-initialiser",
            f"`{variable.name}`, which is no number, gets an initial value inside a SCoP",
            state.span(node),
            helps=["assign its members, or declare it outside"],
        )
    source = value(node, state)
    found = affine_of(node, place_of(variable), state)
    return source, None if found is None else Known(found, source)
