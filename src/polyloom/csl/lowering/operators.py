"""Operators on values that are known at run time only: both sides have one type; integers wrap around."""

from __future__ import annotations

from polyloom.csl import comptime, types
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.body import Body, Operand, fail
from polyloom.csl.lowering.conversions import typed
from polyloom.csl.syntax import tree as syntax
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Span

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
SHIFTS = ("<<", ">>")


def combine(
    body: Body, operator: str, left: Operand, right: Operand, node: syntax.Binary | syntax.Assign
) -> Operand:
    """Return ``left operator right``. Errors: ``csl-type``."""
    first, second = (node.left, node.right) if isinstance(node, syntax.Binary) else (node.target, node.value)
    if isinstance(left, Value) and isinstance(right, Value):
        return comptime.binary(operator, left, right, node.span)
    if operator in SHIFTS:
        return _shift(body, operator, left, right, node.span)
    kind = _common(left, right, operator, node.span)
    a, b = typed(body, left, kind, first.span), typed(body, right, kind, second.span)
    _check_operator(operator, kind, node.span)
    return tree.Binary(types.BOOL if operator in COMPARISONS else kind, operator, a, b, node.span)


def compound(body: Body, node: syntax.Assign, current: tree.Expression) -> tree.Expression:
    """Return the new value of ``target operator= value``."""
    assert node.operator is not None
    wanted = None if node.operator in SHIFTS else current.type
    value = combine(body, node.operator, current, body.operand(node.value, wanted), node)
    return typed(body, value, current.type, node.span)


def _common(left: Operand, right: Operand, operator: str, span: Span) -> Type:
    """Return the type of both sides: literals take that of the other side."""
    meeting = comptime.peer(left.type, right.type)
    pointers = isinstance(left.type, types.Pointer) and isinstance(right.type, types.Pointer)
    if meeting is None and pointers and operator in ("==", "!="):
        meeting = left.type
    if meeting is None:
        raise comptime.operands(operator, left.type, right.type, span)
    return meeting


def _check_operator(operator: str, kind: Type, span: Span) -> None:
    integral = isinstance(kind, types.Integer)
    bits = operator in ("&", "|", "^")
    if operator in ("==", "!=") or integral:
        return
    if (bits and kind == types.BOOL) or (isinstance(kind, types.Float) and not bits and operator != "%"):
        return
    fail("csl-type", f"`{operator}` is not defined for `{kind}`", span, "", "convert the operands first")


def _shift(body: Body, operator: str, left: Operand, right: Operand, span: Span) -> Operand:
    if isinstance(left, Value) and left.type == types.COMPTIME_INT:
        fail("csl-type", "the type of what is shifted is not known", span, "", "write `@as(u32, ...)`")
    first = typed(body, left, left.type, span)
    kind = types.U16 if isinstance(right, Value) and right.type == types.COMPTIME_INT else right.type
    if not (isinstance(first.type, types.Integer) and isinstance(kind, types.Integer)):
        fail("csl-type", f"`{operator}` of `{first.type}` by `{kind}`", span, "", "shift integers")
    return tree.Binary(first.type, operator, first, typed(body, right, kind, span), span)
