"""Which names a piece of C may write: assigned, incremented, or given away by address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

from pycparser import c_ast

from polyloom.frontends.c.scope.names import Address, Binding, Defined, Scope, TypeName
from polyloom.frontends.c.scope.types import Pointer
from polyloom.frontends.c.syntax.nodes import nodes_in


def written_names(node: c_ast.Node | list[c_ast.Node], scope: Scope) -> frozenset[str]:
    """Return the names of scalars that may change; shadowing makes it an overestimate."""
    around = scope.names_around()
    pointers = {name for name, found in around.items() if isinstance(found, Address)}
    nodes = node if isinstance(node, list) else [node]
    run = _Run(scope.file.names, around, frozenset(pointers), {})
    return frozenset().union(*(_changed(one, run, frozenset()) for one in nodes))


@dataclass(frozen=True, eq=False)
class _Changes:
    """What a piece of C by itself may change.

    ``assigned``: scalars that are assigned to. ``reached``: names that lvalues, and pointers that are given
    to functions, may begin with. ``kept``: for each declaration with a value the name of its type, None for a
    pointer, and the names that the value may begin with. ``called``: functions. ``declared``: names.
    """

    assigned: frozenset[str]
    reached: frozenset[str]
    kept: tuple[tuple[str | None, frozenset[str]], ...]
    called: frozenset[str]
    declared: frozenset[str]


@dataclass(frozen=True, eq=False)
class _Run:
    """What is known while changes are put together; ``pointers``: names that count where they are reached.

    None: all of them do. ``done``: functions that were looked at.
    """

    functions: Mapping[str, Binding]
    around: Mapping[str, Binding]
    pointers: frozenset[str] | None
    done: dict[str, frozenset[str]]


def _changed(node: c_ast.Node, run: _Run, inside: frozenset[str]) -> frozenset[str]:
    """Return what a piece of C may change, with what the functions do that it calls."""
    own = _changes(node)
    reached = own.reached.union(*(names for kind, names in own.kept if _keeps_pointer(kind, run.around)))
    found = own.assigned | (reached if run.pointers is None else reached & run.pointers)
    return found.union(*(_changed_by_call(name, run, inside) for name in own.called))


def _changed_by_call(name: str, run: _Run, inside: frozenset[str]) -> frozenset[str]:
    function = run.functions.get(name)
    if not isinstance(function, Defined) or function.body is None or name in inside:
        return frozenset()
    if name not in run.done:
        found = _changed(function.body, run, inside | {name})
        run.done[name] = found - _changes(function.body).declared
    return run.done[name]


_KNOWN: WeakKeyDictionary[c_ast.Node, _Changes] = WeakKeyDictionary()
"""What was found out of statements: a function is called, and a loop is looked at, many times."""


def _changes(node: c_ast.Node) -> _Changes:
    found = _KNOWN.get(node)
    if found is None:
        found = _KNOWN[node] = _found_out(node)
    return found


def _found_out(node: c_ast.Node) -> _Changes:
    assigned, reached, called, declared = set[str](), set[str](), set[str](), set[str]()
    kept: list[tuple[str | None, frozenset[str]]] = []
    for part in nodes_in(node):
        match part:
            case c_ast.Assignment(lvalue=target):
                _take(target, assigned, reached)
            case c_ast.UnaryOp(op="++" | "--" | "p++" | "p--" | "&", expr=target):
                _take(target, assigned, reached)
            case c_ast.FuncCall(name=name, args=args):
                called |= {name.name} if isinstance(name, c_ast.ID) else set()
                for argument in args.exprs if args is not None else ():
                    reached.update(_bases_of(argument))
            case c_ast.Decl(name=name, type=kind, init=value):
                declared |= {name} if name else set()
                if value is not None and (named := _pointer_type(kind)) is not False:
                    kept.append((named, frozenset(_bases_of(value))))
            case _:
                pass
    return _Changes(
        assigned=frozenset(assigned),
        reached=frozenset(reached),
        kept=tuple(kept),
        called=frozenset(called),
        declared=frozenset(declared),
    )


def _take(target: c_ast.Node, assigned: set[str], reached: set[str]) -> None:
    if isinstance(target, c_ast.ID):
        assigned.add(target.name)
    else:
        reached.update(_bases_of(target))


def _pointer_type(declared: c_ast.Node) -> str | Literal[False] | None:
    """Return None for the type of a pointer, a name where that may stand for one, else False."""
    match declared:
        case c_ast.PtrDecl():
            return None
        case c_ast.TypeDecl(type=c_ast.IdentifierType(names=[name])):
            return str(name)
        case _:
            return False


def _keeps_pointer(kind: str | None, around: Mapping[str, Binding]) -> bool:
    known = None if kind is None else around.get(kind)
    return kind is None or (isinstance(known, TypeName) and isinstance(known.type, Pointer))


def _bases_of(node: c_ast.Node) -> Iterator[str]:
    """Yield the names that an lvalue or pointer may begin with: ``a`` and ``i`` of ``a + i``."""
    match node:
        case c_ast.ID(name=name):
            yield str(name)
        case c_ast.ArrayRef(name=inner) | c_ast.StructRef(name=inner):
            yield from _bases_of(inner)
        case c_ast.UnaryOp(expr=inner) | c_ast.Cast(expr=inner):
            yield from _bases_of(inner)
        case c_ast.BinaryOp(left=left, right=right):
            yield from _bases_of(left)
            yield from _bases_of(right)
        case c_ast.TernaryOp(iftrue=first, iffalse=second):
            yield from _bases_of(first)
            yield from _bases_of(second)


def addressed(node: c_ast.Node) -> frozenset[str]:
    """Return the names of variables whose addresses are taken."""
    taken = (part.expr for part in nodes_in(node) if isinstance(part, c_ast.UnaryOp) and part.op == "&")
    return frozenset(part.name for part in taken if isinstance(part, c_ast.ID))


def contains(node: c_ast.Node, kinds: tuple[type, ...]) -> c_ast.Node | None:
    """Return the first node of one of the kinds, in the order of the text."""
    if isinstance(node, kinds):
        return node
    for _, child in node.children():
        if (found := contains(child, kinds)) is not None:
            return found
    return None


def first_change(node: c_ast.Node, name: str) -> c_ast.Node | None:
    """Return the first node that may change a scalar."""
    match node:
        case c_ast.Assignment(lvalue=c_ast.ID(name=found)) if found == name:
            return node
        case c_ast.UnaryOp(op="++" | "--" | "p++" | "p--" | "&", expr=c_ast.ID(name=found)) if found == name:
            return node
        case _:
            inside = (first_change(child, name) for _, child in node.children())
            return next((change for change in inside if change is not None), None)


def contains_early_return(statements: list[c_ast.Node]) -> bool:
    """Whether some path leaves a function before its last statement."""
    if statements and isinstance(statements[-1], c_ast.Return):
        statements = statements[:-1]
    return any(contains(node, (c_ast.Return,)) is not None for node in statements)


def repeated_names(function: c_ast.FuncDef) -> frozenset[str]:
    """Return the names that a function declares more than once, apart from variables of loops."""
    counts: dict[str, int] = {}

    def count(node: c_ast.Node) -> None:
        for name, child in node.children():
            if name == "init" and isinstance(node, c_ast.For):
                continue
            if isinstance(child, c_ast.Decl) and child.name:
                counts[child.name] = counts.get(child.name, 0) + 1
            count(child)

    count(function.decl)
    count(function.body)
    return frozenset(name for name, number in counts.items() if number > 1)


def changed_bases(node: c_ast.Node | None, scope: Scope) -> frozenset[str]:
    """Return the names of variables, arrays among them, that a piece of C may change."""
    if node is None:
        return frozenset()
    return _changed(node, _Run(scope.file.names, scope.names_around(), None, {}), frozenset())


def names_in(node: c_ast.Node) -> frozenset[str]:
    """Return the identifiers of an expression."""
    found = {node.name} if isinstance(node, c_ast.ID) else set()
    for _, child in node.children():
        found |= names_in(child)
    return frozenset(found)
