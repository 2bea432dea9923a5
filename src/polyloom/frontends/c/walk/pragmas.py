"""Directives to the compiler: ``#pragma mdh parallel``, ``__pencil_assume``; other pragmas are ignored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from pycparser import c_ast

from polyloom.diagnostics import Span
from polyloom.frontends.c.expressions.values import truth, value
from polyloom.frontends.c.integers.affine import holds
from polyloom.frontends.c.scope.conversions import stored
from polyloom.frontends.c.scope.declarations import type_of_name
from polyloom.frontends.c.scope.functions import parameters_of, returned
from polyloom.frontends.c.scope.names import Defined, Scope, Value
from polyloom.frontends.c.scope.sets import without_set
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import Scalar
from polyloom.frontends.c.syntax.faults import NotAffine, fail, line_span, refuse
from polyloom.frontends.c.syntax.openmp import shared_among_threads
from polyloom.frontends.c.walk.drafting import draft
from polyloom.ir.expressions import Expression, Read
from polyloom.scop.model import StatedParallel

OPERATORS = ("++", "+", "*", "max", "min", "&", "|", "^")
"""What a loop's points may be combined with, beside functions of the source."""

_CLAUSE = re.compile(r"mdh\s+parallel\s*\((?P<inside>[^()]+(\([^()]*\)[^()]*)*)\)")


def stated_parallel(node: c_ast.Pragma, state: State) -> list[StatedParallel]:
    """Return what the pragma states about the next loop. Errors: ``c-mdh-pragma``."""
    text = node.string.strip()
    if not re.match(r"mdh\b", text):
        return []
    clause = _CLAUSE.fullmatch(text)
    span = pragma_span(node, state)
    if clause is None:
        _wrong(f"`#pragma {text}` is not understood", span)
    listed, colon, target = clause["inside"].partition(":")
    operators = tuple(word.strip() for word in listed.split(","))
    functions = tuple(_function(operator, span, state) for operator in operators)
    return [
        StatedParallel(
            operators=operators,
            target=target.strip() if colon else None,
            loop=None,
            span=span,
            functions=functions,
        )
    ]


def refuse_shared(nodes: Sequence[c_ast.Node], state: State) -> None:
    """Refuse directives by which threads share what a part does. Errors: ``c-openmp``."""
    found = shared_among_threads(nodes) if state.mode is Mode.COMPUTE else None
    if found is not None:
        refuse(
            "c-openmp",
            f"`#pragma {found.string.strip()}` is meant for several threads that come to the part",
            pragma_span(found, state),
            helps=["a SCoP may hold `#pragma omp parallel for`; without the directive it may be one"],
        )


def pragma_span(node: c_ast.Pragma, state: State) -> Span:
    """Return the whole directive in the source."""
    found = line_span(state.places.source, node.coord.line)
    return found if found is not None else Span(state.places.source, 0, 1)


def _function(operator: str, span: Span, state: State) -> Expression | None:
    """Return the value of a function that is named as an operator, at two reads;
    None for built-in operators.
    """
    if operator in OPERATORS:
        return None
    found = state.scope.find(operator) if operator.isidentifier() else None
    if not isinstance(found, Defined) or found.body is None:
        _wrong(f"`{operator}` is no combine operator", span)
    result, parameters = returned(found), parameters_of(found)
    types = [type_of_name(parameter, state) for parameter in parameters]
    if result is None or len(types) != 2 or not all(isinstance(t, Scalar) for t in types):
        _wrong(f"`{operator}` is no function of two numbers that is one `return`", span)
    scope = Scope(state.scope.file)
    for k, (parameter, ctype) in enumerate(zip(parameters, types, strict=True)):
        assert isinstance(ctype, Scalar)
        scope.names[parameter.name] = Value(Read(k, ctype.element), ctype)
    target = type_of_name(found.declaration.type, state)
    with state.inside(scope):
        inner = value(result, state)
    return stored(inner, target) if isinstance(target, Scalar) else inner


def _wrong(message: str, span: Span) -> NoReturn:
    fail(
        "c-mdh-pragma",
        message,
        span,
        helps=[
            "`#pragma mdh parallel(++, ++, +: C[i][j])` names an operator for each loop, outermost first: "
            f"{', '.join(f'`{o}`' for o in OPERATORS)} or a function of two numbers, and what is reduced"
        ],
    )


def check_followed(state: State) -> None:
    """A pragma that states something stands before a loop. Errors: ``c-mdh-pragma``."""
    if state.pending:
        span = state.pending[0].span
        state.pending.clear()
        _wrong("`#pragma mdh parallel` stands before no loop", span)


def assume(condition: c_ast.Node, node: c_ast.Node, state: State) -> None:
    """Take a condition for granted wherever the walk now is; about data it says nothing that is used."""
    try:
        failing = state.path.subtract(holds(condition, state))
    except NotAffine:
        failing = None
    if failing is not None:
        state.context = state.context.subtract(without_set(failing, state.iterators)).coalesce()
    if state.mode is Mode.TEXT:
        draft(None, truth(condition, state), node, state, None)
