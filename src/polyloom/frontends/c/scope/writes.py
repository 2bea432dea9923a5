"""Which names a piece of C may write: assigned, incremented, or given away by address."""

from __future__ import annotations

from pycparser import c_ast

from polyloom.frontends.c.scope.names import Address, Defined, Scope


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

    def _target(self, node: c_ast.Node) -> None:
        if isinstance(node, c_ast.ID):
            self.found.add(node.name)
        else:
            self._pointed(node)

    def _pointed(self, node: c_ast.Node) -> None:
        """Add a pointer's name through which a scalar may change."""
        name = base_name(node)
        if name is not None and isinstance(self.scope.names_around().get(name), Address):
            self.found.add(name)


def base_name(node: c_ast.Node) -> str | None:
    """Return the name of the variable that an lvalue or pointer begins with."""
    while isinstance(node, (c_ast.ArrayRef, c_ast.StructRef, c_ast.UnaryOp, c_ast.Cast, c_ast.BinaryOp)):
        if isinstance(node, (c_ast.ArrayRef, c_ast.StructRef)):
            node = node.name
        else:
            node = node.left if isinstance(node, c_ast.BinaryOp) else node.expr
    return str(node.name) if isinstance(node, c_ast.ID) else None


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

    def _add(self, node: c_ast.Node) -> None:
        name = base_name(node)
        if name is not None:
            self.found.add(name)


def names_in(node: c_ast.Node) -> frozenset[str]:
    """Return the identifiers of an expression."""
    found = {node.name} if isinstance(node, c_ast.ID) else set()
    for _, child in node.children():
        found |= names_in(child)
    return frozenset(found)
