"""Structures that are stored as a whole, member by member.

cplx s = {1, x[i]};  ->  s.re = 1; s.im = x[i];
y[i] = s;            ->  y[i].re = s.re; y[i].im = s.im;
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import NoReturn

from pycparser import c_ast

from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import Array, CType, Record, Scalar
from polyloom.frontends.c.syntax.faults import refuse
from polyloom.frontends.c.walk.initialisers import LONGEST, constant_extent, is_too_long


def copied(kind: Record, target: c_ast.Node, source: c_ast.Node, state: State) -> list[c_ast.Node]:
    """Return statements that copy a structure from one place to another. Errors: ``c-initialiser``."""
    return [*_copied(kind, target, source, state)]


def listed(kind: Record, target: c_ast.Node, values: c_ast.InitList, state: State) -> list[c_ast.Node]:
    """Return statements that store listed values into a structure, zeros where none is listed.

    ``target`` is a new variable, so that no value reads a member that was stored before it.
    Errors: ``c-initialiser``.
    """
    given = _by_member(kind, target, values, state)
    return [
        one
        for name, member in kind.members
        for one in _stored(member, _member(target, name), given.get(name), state)
    ]


def by_another(target: c_ast.Node, literal: c_ast.CompoundLiteral) -> c_ast.Compound:
    """Return ``{ T other = {..}; target = other; }`` for ``target = (T){..}``.

    Values of the literal may read the target.
    """
    at, name = target.coord, "polyloom_literal"
    kind = copy.deepcopy(literal.type.type)
    kind.declname = name
    other = c_ast.Decl(name, [], [], [], [], kind, literal.init, None, at)
    return c_ast.Compound([other, c_ast.Assignment("=", target, c_ast.ID(name, at), at)], at)


def _copied(kind: CType, target: c_ast.Node, source: c_ast.Node, state: State) -> Iterator[c_ast.Node]:
    match kind:
        case Record(members=members, union=False):
            for name, member in members:
                yield from _copied(member, _member(target, name), _member(source, name), state)
        case Array(element=element):
            for k in range(_extent(kind, target, state)):
                yield from _copied(element, _element(target, k), _element(source, k), state)
        case Scalar():
            yield c_ast.Assignment("=", target, source, source.coord)
        case _:
            _refuse(target, "a member is a pointer, a bit-field or a union", state)


def _stored(kind: CType, target: c_ast.Node, value: c_ast.Node | None, state: State) -> Iterator[c_ast.Node]:
    match kind, value:
        case Record(union=False), c_ast.InitList():
            yield from listed(kind, target, value, state)
        case Record(union=False), None:
            yield from listed(kind, target, c_ast.InitList([], target.coord), state)
        case Record(union=False), _:
            yield from _copied(kind, target, value, state)
        case Array(element=element), c_ast.InitList() | None:
            if value is not None and is_too_long(value, kind):
                _refuse(target, "more values are listed than a member has elements", state)
            values = list(value.exprs) if value is not None else []
            for k in range(_extent(kind, target, state)):
                yield from _stored(
                    element, _element(target, k), values[k] if k < len(values) else None, state
                )
        case Scalar(), c_ast.InitList() | c_ast.NamedInitializer():
            _refuse(target, "a number is in braces or has a name", state)
        case Scalar(), _:
            zero = c_ast.Constant("int", "0", target.coord)
            yield c_ast.Assignment("=", target, zero if value is None else value, target.coord)
        case _:
            _refuse(
                target,
                "a member is a pointer, a bit-field or a union, or a row of it has no list of its own",
                state,
            )


def _by_member(
    kind: Record, target: c_ast.Node, values: c_ast.InitList, state: State
) -> Mapping[str, c_ast.Node]:
    """Return what is listed by the names of members: in their order, or ``.name = value`` all through."""
    names = [name for name, _ in kind.members]
    if not any(isinstance(v, c_ast.NamedInitializer) for v in values.exprs):
        if len(values.exprs) > len(names):
            _refuse(target, "more values are listed than there are members", state)
        return dict(zip(names, values.exprs, strict=False))
    found: dict[str, c_ast.Node] = {}
    for value in values.exprs:
        named = isinstance(value, c_ast.NamedInitializer) and len(value.name) == 1
        name = getattr(value.name[0], "name", None) if named else None
        if name not in names or name in found:
            _refuse(target, "some values are named, others not, or not by one member each", state)
        found[name] = value.expr
    return found


def _extent(kind: Array, node: c_ast.Node, state: State) -> int:
    extent = constant_extent(kind)
    if extent is None or extent > LONGEST:
        _refuse(node, f"a member has more than {LONGEST} elements, or it is not known how many", state)
    return extent


def _member(node: c_ast.Node, name: str) -> c_ast.StructRef:
    return c_ast.StructRef(node, ".", c_ast.ID(name, node.coord), node.coord)


def _element(node: c_ast.Node, k: int) -> c_ast.ArrayRef:
    return c_ast.ArrayRef(node, c_ast.Constant("int", str(k), node.coord), node.coord)


def _refuse(node: c_ast.Node, reason: str, state: State) -> NoReturn:
    refuse(
        "c-initialiser",
        "the structure cannot be stored member by member",
        state.span(node),
        notes=[reason],
        helps=["assign its members"],
    )
