"""Structures that a function is given by value and leaves as they are: it sees the caller's own.

float at(image m, int i) { return m.data[i]; }    at(im, k)  ->  im.data[k]

A copy has its members one by one, and a pointer among them is none that stays as it is in memory.
"""

from __future__ import annotations

from pycparser import c_ast

from polyloom.frontends.c.scope.names import Address, Variable
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import CType, Pointer, Record, Scalar
from polyloom.frontends.c.scope.writes import changed_bases, names_in
from polyloom.scop.model import Origin


def unchanged(
    name: str,
    kind: Record,
    argument: c_ast.Node,
    body: c_ast.FuncDef,
    pointed: frozenset[str],
    state: State,
) -> Variable | None:
    """Return the variable that is given for a parameter, where neither changes in the function; else None.

    ``pointed``: names of variables into which other arguments point.
    """
    found = state.scope.find(argument.name) if isinstance(argument, c_ast.ID) else None
    if not isinstance(found, Variable) or found.type != kind or not _is_plain(kind):
        return None
    if found.name in pointed or _changes(body, name, kind):
        return None
    is_global = found.origin is Origin.GLOBAL
    return None if is_global and found.name in changed_bases(body, state.scope) else found


def pointed_into(call: c_ast.FuncCall, state: State) -> frozenset[str]:
    """Return the names of variables whose addresses a call gives."""
    found = set[str]()
    for argument in call.args.exprs if call.args is not None else ():
        found |= _addresses(argument)
        known = state.scope.find(argument.name) if isinstance(argument, c_ast.ID) else None
        found |= {known.place.variable.name} if isinstance(known, Address) else set()
    return frozenset(found)


def _addresses(node: c_ast.Node) -> set[str]:
    own = set(names_in(node.expr)) if isinstance(node, c_ast.UnaryOp) and node.op == "&" else set()
    return own.union(*(_addresses(child) for _, child in node.children()))


def _is_plain(kind: CType) -> bool:
    """Whether all members are numbers, pointers, or structures of such: what is subscripted is elsewhere."""
    match kind:
        case Record(members=members, union=False):
            return all(_is_plain(member) for _, member in members)
        case _:
            return isinstance(kind, Scalar | Pointer)


def _changes(node: c_ast.Node, name: str, kind: Record) -> bool:
    """Whether a piece of C may change a structure with a name, or a member of it."""
    match node:
        case c_ast.Assignment(lvalue=target) if _part(target, name, kind) is not None:
            return True
        case c_ast.UnaryOp(op="++" | "--" | "p++" | "p--" | "&", expr=target):
            if _part(target, name, kind) is not None:
                return True
    return any(_changes(child, name, kind) for _, child in node.children())


def _part(node: c_ast.Node, name: str, kind: Record) -> CType | None:
    """Return the type of what an lvalue names in a structure; None where it names something else."""
    match node:
        case c_ast.ID(name=found):
            return kind if found == name else None
        case c_ast.StructRef(type=".", name=base, field=c_ast.ID(name=member)):
            around = _part(base, name, kind)
            return dict(around.members).get(member) if isinstance(around, Record) else None
        case _:
            return None
