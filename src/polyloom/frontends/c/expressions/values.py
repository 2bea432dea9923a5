"""Expressions of C as expressions of the IR, with every conversion written, and lvalues as places.

Reads go to the state's pool; a ``Read``'s position is its place there. Iterators are ``ParameterValue``s.
Source: ISO C99, 6.5.
"""

from __future__ import annotations

from typing import NoReturn

import islpy as isl
from pycparser import c_ast

from polyloom.frontends.c.expressions.calls import known_call, passed
from polyloom.frontends.c.expressions.constant_places import integer_at
from polyloom.frontends.c.expressions.lvalues import address, place, refuse_pointer, seen_as
from polyloom.frontends.c.expressions.memory import accessed, place_of, refuse_unmodelled
from polyloom.frontends.c.integers.affine import affine, fits_in, holds
from polyloom.frontends.c.integers.extents import extent_of
from polyloom.frontends.c.integers.from_isl import expression_of
from polyloom.frontends.c.integers.sizes import size_of
from polyloom.frontends.c.scope.conversions import (
    arithmetic,
    comparison,
    converted,
    negated,
    no,
    operation,
    stored,
    truth_of,
)
from polyloom.frontends.c.scope.declarations import type_of_name
from polyloom.frontends.c.scope.functions import parameters_of, returned
from polyloom.frontends.c.scope.literals import literal
from polyloom.frontends.c.scope.names import (
    Address,
    Binding,
    Defined,
    EnumConstant,
    Known,
    Place,
    Scope,
    Value,
    Variable,
)
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import Array, CType, Pointer, Record, Scalar, common
from polyloom.frontends.c.syntax.faults import NotAffine, did_you_mean, fail, refuse
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    CompareOp,
    Constant,
    Expression,
    Read,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.types import ElementType
from polyloom.scop.model import Origin

BINARY_OPS = {
    "+": BinaryOp.ADD,
    "-": BinaryOp.SUBTRACT,
    "*": BinaryOp.MULTIPLY,
    "/": BinaryOp.DIVIDE,
    "%": BinaryOp.REMAINDER,
    "&": BinaryOp.BIT_AND,
    "|": BinaryOp.BIT_OR,
    "^": BinaryOp.BIT_XOR,
    "<<": BinaryOp.SHIFT_LEFT,
    ">>": BinaryOp.SHIFT_RIGHT,
}
_COMPARE_OPS = {op.value: op for op in CompareOp}
_INTEGER_ONLY = frozenset(["%", "&", "|", "^", "<<", ">>"])


def value(node: c_ast.Node, state: State) -> Expression:
    """Return the value of an expression.

    Errors: ``Unsupported`` where it is none that the IR has, ``c-undeclared``.
    """
    match node:
        case c_ast.Constant():
            return literal(node, state)
        case c_ast.ID(name=name):
            return _name(name, node, state)
        case c_ast.ArrayRef() | c_ast.StructRef() | c_ast.UnaryOp(op="*"):
            return read(place(node, state), node, state)
        case c_ast.UnaryOp():
            return _unary(node, state)
        case c_ast.BinaryOp():
            return _binary(node, state)
        case c_ast.TernaryOp():
            return _ternary(node, state)
        case c_ast.Cast(to_type=to_type, expr=expr):
            return _cast(to_type, expr, node, state)
        case c_ast.FuncCall():
            found = call(node, state)
            if found is None:
                _refuse_void(node, state)
            return found
        case c_ast.Assignment():
            return _refuse_effect(node, state)
        case _:
            return refuse(
                "c-expression",
                f"`{state.text(node)}` is no expression that a SCoP can hold",
                state.span(node),
                helps=[
                    "arithmetic, comparisons, `?:`, array elements and calls of mathematical functions are"
                ],
            )


def truth(node: c_ast.Node, state: State) -> Expression:
    """Return whether an expression is not 0, as a truth value;
    the right of && is read only where the left holds.
    """
    match node:
        case c_ast.BinaryOp(op="&&" | "||" as op, left=left, right=right):
            first = truth(left, state)
            try:
                where = holds(left, state)
            except NotAffine:
                return _logic(op, first, truth(right, state))
            where = where if op == "&&" else where.complement()
            if state.never(where):
                return first
            with state.within(where):
                return _logic(op, first, truth(right, state))
        case c_ast.UnaryOp(op="!", expr=expr):
            return no(truth(expr, state))
        case _ if (said := state.above.not_null(node, state)) is not None:
            return truth_of(Constant(int(said), ElementType.INT32))
        case c_ast.BinaryOp(op=op, left=left, right=right) if op in _COMPARE_OPS:
            return comparison(_COMPARE_OPS[op], value(left, state), value(right, state))
        case _:
            return truth_of(value(node, state))


def _logic(op: str, first: Expression, second: Expression) -> Expression:
    return Binary(BinaryOp.AND if op == "&&" else BinaryOp.OR, first, second)


def _name(name: str, node: c_ast.Node, state: State) -> Expression:
    found = state.scope.find(name)
    match found:
        case EnumConstant(value=number, element=element):
            return Constant(number, element)
        case Value(value=expression):
            return expression
        case Variable(type=Scalar()):
            if (fact := state.fact(found)) is not None:
                return fact.value
            if found in state.unusable:
                refuse(
                    "c-iterator",
                    state.unusable[found],
                    state.span(node),
                    helps=["use the value that the loop's bounds give"],
                )
            return read(place_of(found), node, state)
        case Variable() | Address():
            if isinstance(found, Variable):
                refuse_unmodelled(place_of(found), state.span(node))
            return refuse_pointer(node, state)
        case None:
            return fail(
                "c-undeclared",
                f"`{name}` is not declared",
                state.span(node),
                helps=[
                    *did_you_mean(name, state.scope.names_around()),
                    f"declare it, include its header, or define it: `-D {name}=...`",
                ],
            )
        case _:
            return refuse("c-expression", f"`{name}` is no value", state.span(node), helps=["use a variable"])


def read(found: Place, node: c_ast.Node, state: State) -> Expression:
    """Return the element at a place."""
    refuse_unmodelled(found, state.span(node))
    if isinstance(found.type, (Array, Pointer)):
        refuse_pointer(node, state)
    stays = integer_at(found, state)
    if stays is not None:
        return stays.value
    position = accessed(found, state, state.span(node))
    element = found.type
    if not isinstance(element, Scalar):
        refuse(
            "c-record",
            f"`{state.text(node)}` is a whole structure",
            state.span(node),
            helps=["use its members"],
        )
    return Read(position, element.element)


def _unary(node: c_ast.UnaryOp, state: State) -> Expression:
    match node.op:
        case "+":
            return arithmetic(value(node.expr, state))
        case "-":
            return negated(value(node.expr, state))
        case "!":
            return converted(truth(node, state), ElementType.INT32)
        case "~":
            return Unary(UnaryOp.COMPLEMENT, arithmetic(value(node.expr, state)))
        case "sizeof":
            return expression_of(size_of(node.expr, state), state.type_of, ElementType.UINT64)
        case "&":
            return refuse_pointer(node, state)
        case _:
            return _refuse_effect(node, state)


def _refuse_effect(node: c_ast.Node, state: State) -> NoReturn:
    refuse(
        "c-side-effect",
        f"`{state.text(node)}` changes a variable inside an expression",
        state.span(node),
        helps=["write it as a statement of its own"],
    )


def _binary(node: c_ast.BinaryOp, state: State) -> Expression:
    if node.op in _COMPARE_OPS or node.op in ("&&", "||"):
        return converted(truth(node, state), ElementType.INT32)
    left, right = value(node.left, state), value(node.right, state)
    return combined(node.op, left, right, node, state)


def combined(op: str, left: Expression, right: Expression, node: c_ast.Node, state: State) -> Expression:
    """Return ``left op right``. Errors: ``c-type`` for bits of floats."""
    if op in _INTEGER_ONLY and (left.type.is_float or right.type.is_float):
        fail(
            "c-type",
            f"`{op}` takes integers: `{state.text(node)}`",
            state.span(node),
            helps=["for the remainder of floating-point numbers there is `fmod`"],
        )
    return operation(BINARY_OPS[op], left, right)


def _ternary(node: c_ast.TernaryOp, state: State) -> Expression:
    """Return a selection; where the condition is affine, each side reads only where it is chosen."""
    try:
        where = holds(node.cond, state)
    except NotAffine:
        condition = truth(node.cond, state)
        return _selected(condition, value(node.iftrue, state), value(node.iffalse, state))
    if state.always(where):
        return _chosen(node.iftrue, node.iffalse, where.complement(), state)
    if state.always(where.complement()):
        return _chosen(node.iffalse, node.iftrue, where, state)
    condition = truth(node.cond, state)
    with state.within(where):
        then = value(node.iftrue, state)
    with state.within(where.complement()):
        otherwise = value(node.iffalse, state)
    return _selected(condition, then, otherwise)


def _chosen(node: c_ast.Node, other: c_ast.Node, nowhere: isl.Set, state: State) -> Expression:
    """Return the side that is always taken, in the type that it has together with the other one."""
    found = value(node, state)
    if found.type is ElementType.FLOAT64:
        return found
    reads, drafts, known = len(state.pool), len(state.drafts), set(state.array_names)
    with state.within(nowhere):
        element = common(found.type, value(other, state).type)
    if len(state.drafts) == drafts:  # it was looked at for its type alone
        del state.pool[reads:]
        for key in state.array_names.keys() - known:
            del state.arrays[state.array_names.pop(key)]
    return converted(found, element)


def _selected(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    element = common(then.type, otherwise.type)
    return Select(condition, converted(then, element), converted(otherwise, element))


def _cast(to_type: c_ast.Node, expr: c_ast.Node, node: c_ast.Node, state: State) -> Expression:
    target = type_of_name(to_type, state)
    if not isinstance(target, Scalar):
        refuse_pointer(node, state)
    return stored(value(expr, state), target)


def call(node: c_ast.FuncCall, state: State) -> Expression | None:
    """Return the value of a call; None for a function that returns nothing.

    A function of the file is inlined: as an expression where it is one ``return``, else as statements
    before this
    one. In the text's form a function that is not ``inline`` is summarised.
    """
    found = state.scope.find(node.name.name) if isinstance(node.name, c_ast.ID) else None
    if isinstance(found, Defined) and found.body is not None:
        if state.mode is Mode.TEXT and not found.inline:
            return state.above.summarise(found, node, state)
        result = returned(found)
        if (
            state.mode is Mode.TEXT
            or result is None
            or found.name in state.calls
            or _takes_whole(found, state)
        ):
            return state.above.inline(found, node, state)
        return _substituted(found, result, node, state)
    known = known_call(node, state, value)
    if known is not None:
        return known
    return state.above.summarise(found if isinstance(found, Defined) else None, node, state)


def _takes_whole(found: Defined, state: State) -> bool:
    """Whether a parameter is a structure that is given by value: it gets a copy, in statements."""
    by_value = [p for p in parameters_of(found) if isinstance(p.type, c_ast.TypeDecl)]
    return any(isinstance(type_of_name(p, state), Record) for p in by_value)


def _refuse_void(node: c_ast.FuncCall, state: State) -> NoReturn:
    fail(
        "c-call",
        f"`{state.text(node)}` has no value",
        state.span(node),
        helps=["a `void` function is called as a statement"],
    )


def _substituted(found: Defined, result: c_ast.Node, node: c_ast.FuncCall, state: State) -> Expression:
    """Return ``result`` with the arguments of the call in place of the parameters."""
    scope = Scope(state.scope.file)
    for declaration, argument in passed(found, node, state):
        ctype = parameter_type(declaration, scope, state)
        scope.names[declaration.name] = bound(declaration, ctype, argument, state)
    target = type_of_name(found.declaration.type, state)
    if not isinstance(target, Scalar):
        refuse_pointer(node, state)
    with state.inside(scope), state.calling(found.name):
        return stored(value(result, state), target)


def parameter_type(declaration: c_ast.Decl, scope: Scope, state: State) -> CType:
    """Return the type of a parameter of an inlined function, whose extents speak of those before it.

    The first extent of an array means nothing. Errors: ``c-type``, ``c-extent``.
    """
    with state.inside(scope):
        if isinstance(declaration.type, c_ast.ArrayDecl):
            return Array(type_of_name(declaration.type.type, state, extent_of), None)
        return type_of_name(declaration, state, extent_of)


def bound(declaration: c_ast.Decl, ctype: CType, argument: c_ast.Node, state: State) -> Binding:
    """Return what a parameter of an inlined expression stands for."""
    if isinstance(ctype, (Pointer, Array)):
        return seen_as(ctype, address(argument, state), argument, state)
    if not isinstance(ctype, Scalar):
        refuse_pointer(argument, state)
    expression = stored(value(argument, state), ctype)
    try:
        known = affine(argument, state)
    except NotAffine:
        return Value(expression, ctype)
    if ctype.boolean or ctype.element.is_float or not fits_in(known, ctype.element, state):
        return Value(expression, ctype)
    variable = Variable(declaration.name, declaration.name, ctype, Origin.INNER)
    state.known[variable] = Known(known, expression)
    return variable
