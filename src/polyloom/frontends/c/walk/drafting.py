"""Drafts of statements at the point that the walk has reached, and what is known of scalars after them."""

from __future__ import annotations

from itertools import islice

import islpy as isl
from pycparser import c_ast

from polyloom.frontends.c.expressions.memory import accessed, refuse_unmodelled
from polyloom.frontends.c.integers.affine import affine, fits_in
from polyloom.frontends.c.scope.conversions import stored
from polyloom.frontends.c.scope.drafts import Draft, Touched
from polyloom.frontends.c.scope.names import Formula, Known, Place
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import Array, Scalar
from polyloom.frontends.c.syntax.faults import NotAffine, fail, refuse
from polyloom.ir.expressions import Expression, Read, has_procedure, walk


def affine_of(node: c_ast.Node, target: Place, state: State) -> isl.PwAff | None:
    """Return the value that an integer scalar gets, if it is affine."""
    if (
        not isinstance(target.type, Scalar)
        or target.type.element.is_float
        or target.indices
        or target.members
    ):
        return None
    try:
        return affine(node, state)
    except NotAffine:
        return None


def write(
    target: Place,
    source: Expression,
    known: Known | None,
    node: c_ast.Node,
    state: State,
    label: str | None = None,
) -> None:
    """Draft ``target = source``; what is known of the target from now on is ``known``.

    Errors: ``c-constant``, ``c-array``, ``c-pointer`` for targets that cannot be assigned.
    """
    refuse_unmodelled(target, state.span(node))
    if not isinstance(target.type, Scalar):
        refuse(
            "c-array" if isinstance(target.type, Array) else "c-pointer",
            f"`{target.variable.name}` is no scalar, and is assigned to",
            state.span(node),
            helps=["assign its elements or members"],
        )
    if target.variable.constant:
        fail(
            "c-constant", f"`{target.variable.name}` is `const`", state.span(node), helps=["drop the `const`"]
        )
    begin(target, source, known, node, state, label)


def begin(
    target: Place,
    source: Expression,
    known: Known | None,
    node: c_ast.Node,
    state: State,
    label: str | None = None,
) -> None:
    """Draft ``target = source`` for a target that may be ``const``: its first value."""
    assert isinstance(target.type, Scalar)
    result = stored(source, target.type)
    position = accessed(target, state, state.span(node))
    draft(position, result, node, state, label)
    learn(target, source, known, state)


_LONGEST = 100
"""How many operations a value has that stands in the place of its variable."""


def learn(target: Place, source: Expression, known: Known | None, state: State) -> None:
    """Remember what is known of a scalar from now on: that it is ``known``, or is ``source``."""
    if target.members or target.indices or not isinstance(target.type, Scalar):
        return
    variable = target.variable
    state.forget([variable])
    state.unusable.pop(variable, None)
    if state.condition is not None or target.type.boolean or target.type.element.is_float:
        return
    if has_procedure(source):
        return
    value = stored(source if known is None else known.value, target.type)
    parts = list(islice(walk(value), _LONGEST + 1))
    if len(parts) > _LONGEST or any(isinstance(part, Read) for part in parts):
        return
    if known is None:
        if state.mode is Mode.COMPUTE:
            state.known[variable] = Formula(value)
    elif fits_in(known.affine, value.type, state):
        state.known[variable] = Known(known.affine, value)


def draft(
    target: int | None, result: Expression | None, node: c_ast.Node, state: State, label: str | None
) -> None:
    """Remember a statement at this point; it takes with it what the calls inside it touch."""
    touched, state.touched = state.touched, Touched()
    if label is not None:
        label = state.fresh(label)
        state.labels.add(label)
    state.drafts.append(
        Draft(
            label or "",
            state.path,
            tuple(state.frames),
            tuple(state.position),
            target,
            result,
            state.condition,
            state.span(node),
            reads=tuple(touched.reads),
            writes=tuple(touched.writes),
            must=tuple(touched.must),
            refused=tuple(touched.refused),
            text=state.text(node),
        )
    )
    state.position[-1] += 1
