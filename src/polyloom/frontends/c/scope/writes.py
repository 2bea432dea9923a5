"""Which names a piece of C may write: assigned, incremented, or given away by address."""

from __future__ import annotations

from collections.abc import Iterator

from pycparser import c_ast

from polyloom.frontends.c.scope.names import Address, Defined, Scope, TypeName
from polyloom.frontends.c.scope.types import Pointer
from polyloom.frontends.c.syntax.nodes import nodes_in


def written_names(node: c_ast.Node | list[c_ast.Node], scope: Scope) -> frozenset[str]:
    """Return the names of scalars that may change; shadowing makes it an overestimate."""
    finder = _Finder(scope)
    for one in node if isinstance(node, list) else [node]:
        finder.visit(one)
    return frozenset(finder.found)


class _Finder(c_ast.NodeVisitor):  # type: ignore[misc]
    def __init__(self, scope: Scope, inside: frozenset[str] = frozenset()) -> None:
        self.scope = scope
        self.inside = inside
        self.found: set[str] = set()

    def visit_Assignment(self, node: c_ast.Assignment) -> None:
        self._target(node.lvalue)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: c_ast.UnaryOp) -> None:
        if node.op in ("++", "--", "p++", "p--", "&"):
            self._target(node.expr)
        self.generic_visit(node)

    def visit_FuncCall(self, node: c_ast.FuncCall) -> None:
        found = self.scope.file.names.get(node.name.name) if isinstance(node.name, c_ast.ID) else None
        if isinstance(found, Defined) and found.body is not None and found.name not in self.inside:
            inner = _Finder(self.scope, self.inside | {found.name})
            inner.visit(found.body)
            self.found |= inner.found - _declared(found.body)
        for argument in node.args.exprs if node.args is not None else ():
            self._pointed(argument)
        self.generic_visit(node)

    def visit_Decl(self, node: c_ast.Decl) -> None:
        if node.init is not None and _is_pointer(node.type, self.scope):
            self._pointed(node.init)
        self.generic_visit(node)

    def _target(self, node: c_ast.Node) -> None:
        if isinstance(node, c_ast.ID):
            self.found.add(node.name)
        else:
            self._pointed(node)

    def _pointed(self, node: c_ast.Node) -> None:
        """Add a pointer's name through which a scalar may change."""
        around = self.scope.names_around()
        self.found |= {name for name in _bases_of(node) if isinstance(around.get(name), Address)}


def _is_pointer(declared: c_ast.Node, scope: Scope) -> bool:
    """Whether a declared type is a pointer's, under a name too."""
    match declared:
        case c_ast.PtrDecl():
            return True
        case c_ast.TypeDecl(type=c_ast.IdentifierType(names=[name])):
            known = scope.names_around().get(name)
            return isinstance(known, TypeName) and isinstance(known.type, Pointer)
        case _:
            return False


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


def _declared(node: c_ast.Node) -> set[str]:
    """Return all names that a function declares, its parameters among them."""
    found = {node.name} if isinstance(node, c_ast.Decl) and node.name else set()
    for _, child in node.children():
        found |= _declared(child)
    return found


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
    finder = _Bases(scope)
    if node is not None:
        finder.visit(node)
    return frozenset(finder.found)


class _Bases(c_ast.NodeVisitor):  # type: ignore[misc]
    def __init__(self, scope: Scope, inside: frozenset[str] = frozenset()) -> None:
        self.scope = scope
        self.inside = inside
        self.found: set[str] = set()

    def visit_Assignment(self, node: c_ast.Assignment) -> None:
        self._add(node.lvalue)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: c_ast.UnaryOp) -> None:
        if node.op in ("++", "--", "p++", "p--", "&"):
            self._add(node.expr)
        self.generic_visit(node)

    def visit_FuncCall(self, node: c_ast.FuncCall) -> None:
        for argument in node.args.exprs if node.args is not None else ():
            self._add(argument)
        found = self.scope.file.names.get(node.name.name) if isinstance(node.name, c_ast.ID) else None
        if isinstance(found, Defined) and found.body is not None and found.name not in self.inside:
            inner = _Bases(self.scope, self.inside | {found.name})
            inner.visit(found.body)
            self.found |= inner.found - _declared(found.body)
        self.generic_visit(node)

    def visit_Decl(self, node: c_ast.Decl) -> None:
        """What a pointer of the piece's own points into may be changed through it."""
        if node.init is not None and _is_pointer(node.type, self.scope):
            self._add(node.init)
        self.generic_visit(node)

    def _add(self, node: c_ast.Node) -> None:
        self.found |= set(_bases_of(node))


def names_in(node: c_ast.Node) -> frozenset[str]:
    """Return the identifiers of an expression."""
    found = {node.name} if isinstance(node, c_ast.ID) else set()
    for _, child in node.children():
        found |= names_in(child)
    return frozenset(found)
