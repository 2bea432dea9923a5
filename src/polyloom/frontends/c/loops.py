"""The heads of ``for`` loops: iterator, first value, step, condition, as the set of values that it takes."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import Span
from polyloom.frontends.c.affine import affine, constant_of, holds
from polyloom.frontends.c.c_types import Scalar, is_unsigned
from polyloom.frontends.c.faults import NotAffine, refuse
from polyloom.frontends.c.state import (
    Known,
    Mode,
    State,
    Variable,
    constant_affine,
    everywhere,
    parameter_affine,
)
from polyloom.frontends.c.values import truth
from polyloom.ir.expressions import Expression, ParameterValue
from polyloom.ir.types import ElementType

_DIM = isl.dim_type
_FAR = 2**20
"""Where no step makes an unsigned iterator wrap."""
ACCEPTED = "a SCoP has loops `for (i = first; i < last; i += step)`, with affine bounds and a constant step"


@dataclass(frozen=True, eq=False)
class Header:
    """A loop's head. ``domain`` holds the values that the iterator takes, as the parameter ``iterator``."""

    variable: Variable
    iterator: str
    type: ElementType
    value: Known
    domain: isl.Set
    descending: bool
    condition: Expression | None = None
    """What else must hold, where the head's condition depends on data."""


def loop_header(node: c_ast.For, state: State) -> Header:
    """Return what a loop's head says. Errors: ``c-loop``, ``c-bound``."""
    variable, first = _first(node, state)
    if not isinstance(variable.type, Scalar) or variable.type.element.is_float:
        refuse(
            "c-loop",
            f"the loop's variable `{variable.name}` is no integer",
            state.span(node.init),
            helps=["count with an `int`"],
        )
    element = variable.type.element
    iterator = state.fresh(variable.name)
    state.iterators.add(iterator)
    here = Known(parameter_affine(iterator), ParameterValue(iterator, element))
    around = state.known.get(variable)
    state.known[variable] = here
    with state.within(here.affine.ge_set(constant_affine(_FAR))):
        step = _step(node, variable, here.affine, state)
    reached = _reached(here.affine, first, step)
    with state.within(reached.intersect(_possible(here.affine, element))), state.head():
        going, condition = _going(node, state)
    if around is not None:
        state.known[variable] = around
    loop = reached.intersect(_possible(here.affine, element))
    _check_wrapping(loop, going, here, step, state.span(node), state)
    domain = _until(loop, going, iterator, descending=step < 0)
    return Header(variable, iterator, element, here, domain, step < 0, condition)


def _possible(here: isl.PwAff, element: ElementType) -> isl.Set:
    """An unsigned iterator is not negative."""
    return here.ge_set(constant_affine(0)) if is_unsigned(element) else everywhere()


def _check_wrapping(
    loop: isl.Set, going: isl.Set, here: Known, step: int, span: Span | None, state: State
) -> None:
    """An unsigned iterator that passes zero becomes large: there the loop must end. Errors: ``c-loop``."""
    element = here.value.type
    if not is_unsigned(element) or step > 0:
        return
    low = here.affine.lt_set(constant_affine(-step))
    last = loop.intersect(going).intersect(low).intersect(state.path).intersect(state.context)
    name = here.value.name if isinstance(here.value, ParameterValue) else ""
    at = last.find_dim_by_name(_DIM.param, name)
    if at < 0 or last.is_empty():
        return
    wrapped = last.move_dims(_DIM.set, 0, _DIM.param, at, 1).apply(
        isl.Map(f"[{name}] -> {{ [x] -> [] : {name} = x + {step} + {2 ** (8 * element.size)} }}")
    )
    if not wrapped.is_disjoint(going):
        refuse(
            "c-loop",
            "the loop's variable is unsigned, wraps below zero and goes on",
            span,
            helps=["count with an `int`, or end with `i < n`, which a wrapped variable is not"],
        )


def _first(node: c_ast.For, state: State) -> tuple[Variable, isl.PwAff]:
    match node.init:
        case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=name), rvalue=start):
            pass
        case c_ast.DeclList(decls=[c_ast.Decl(name=name, init=start)]) if start is not None:
            pass
        case _:
            refuse(
                "c-loop",
                "the loop does not begin with one assignment to its variable",
                state.span(node.init) or state.span(node),
                helps=[ACCEPTED],
            )
    variable = state.scope.find(name)
    if not isinstance(variable, Variable):
        refuse("c-loop", f"`{name}` is no variable", state.span(node.init), helps=[ACCEPTED])
    with state.head():
        return variable, _bound(start, "the first value of the loop", state)


def _bound(node: c_ast.Node, what: str, state: State) -> isl.PwAff:
    try:
        return affine(node, state)
    except NotAffine as fault:
        refuse("c-bound", f"{what} is not affine", fault.span, label=fault.reason, helps=[ACCEPTED])


def _step(node: c_ast.For, variable: Variable, here: isl.PwAff, state: State) -> int:
    """Return by how much the iterator grows: what it becomes less what it was."""
    changed = _next(node, variable, state)
    if changed is not None:
        step = constant_of(_bound(changed, "the loop's step", state).sub(here))
        if step:
            return step
    return refuse(
        "c-loop",
        f"the loop does not change `{variable.name}` by a constant",
        state.span(node.next) or state.span(node),
        helps=[ACCEPTED],
    )


def _next(node: c_ast.For, variable: Variable, state: State) -> c_ast.Node | None:
    """Return the expression that the iterator becomes."""
    one = c_ast.Constant("int", "1", node.coord)
    match node.next:
        case c_ast.UnaryOp(op="++" | "p++" | "--" | "p--" as op, expr=c_ast.ID(name=name)) if _is(
            name, variable
        ):
            return c_ast.BinaryOp(op.strip("p")[0], node.next.expr, one, node.next.coord)
        case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=name), rvalue=changed) if _is(name, variable):
            result: c_ast.Node = changed
            return result
        case c_ast.Assignment(op="+=" | "-=" as op, lvalue=c_ast.ID(name=name), rvalue=by) if _is(
            name, variable
        ):
            return c_ast.BinaryOp(op[0], node.next.lvalue, by, node.next.coord)
        case _:
            return None


def _is(name: str, variable: Variable) -> bool:
    return name == variable.name


def _reached(here: isl.PwAff, first: isl.PwAff, step: int) -> isl.Set:
    """Return the values from ``first`` on, in steps."""
    passed = here.sub(first) if step > 0 else first.sub(here)
    reached = passed.ge_set(constant_affine(0))
    if abs(step) != 1:
        reached = reached.intersect(passed.mod_val(isl.Val(abs(step))).eq_set(constant_affine(0)))
    return reached


def _going(node: c_ast.For, state: State) -> tuple[isl.Set, Expression | None]:
    """Return where the loop's condition holds; in the text's form it may depend on data."""
    if node.cond is None:
        refuse("c-loop", "the loop has no condition", state.span(node), helps=[ACCEPTED])
    try:
        return holds(node.cond, state), None
    except NotAffine as fault:
        if state.mode is Mode.TEXT:
            return everywhere(), truth(node.cond, state)
        return refuse(
            "c-bound",
            "the loop's condition is not affine",
            fault.span,
            label=fault.reason,
            helps=[ACCEPTED],
        )


def _until(reached: isl.Set, going: isl.Set, iterator: str, *, descending: bool) -> isl.Set:
    """Return the values up to the first for which the condition does not hold.

    Not in the papers: a condition that holds again after it has not (``i % 5 < 3``) ends the loop.
    """
    domain = reached.intersect(going)
    late = _later(reached.subtract(going), iterator, descending=descending)
    return (domain if domain.is_disjoint(late) else domain.subtract(late)).coalesce()


def _later(points: isl.Set, iterator: str, *, descending: bool) -> isl.Set:
    """Return the values of ``iterator`` that come after one in ``points``."""
    found = points.find_dim_by_name(_DIM.param, iterator)
    if found < 0:
        return points
    sign = ">" if descending else "<"
    moved = points.move_dims(_DIM.set, 0, _DIM.param, found, 1)
    order = isl.Map(f"[{iterator}] -> {{ [x] -> [] : x {sign} {iterator} }}")
    return moved.apply(order)


def after(breaks: isl.Set, header: Header) -> isl.Set:
    """Return the iterations that come after one that breaks off the loop."""
    return _later(breaks, header.iterator, descending=header.descending)
