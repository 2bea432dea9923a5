"""Function bodies, walked with what is known of their names, to find the operations in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from polyloom.csl import types, values
from polyloom.csl.comptime import Module, NotComptime, Program, Runtime, Scope, evaluate, place, resolve_type
from polyloom.csl.comptime.evaluate import truth
from polyloom.csl.lint.subject import is_users
from polyloom.csl.syntax import tree
from polyloom.diagnostics import PolyloomError


def nodes_of(root: object) -> Iterator[tree.Node]:
    """Yield all nodes of a tree, parents before children."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, tree.Node):
            yield node
        if isinstance(node, tree.Node | tree.File):
            stack += [getattr(node, f.name) for f in reversed(fields(node)) if f.name not in _PLACES]
        elif isinstance(node, tuple):
            stack += reversed(node)


_PLACES = ("span", "name_span", "source")


def operations(program: Program) -> Iterator[tuple[tree.Builtin, Scope]]:
    """Yield the builtins of the users' functions and tasks, each with what is known of the names there.

    Branches that are not taken on this architecture or with these parameters are left out.
    """
    for module in program.modules:
        if is_users(module):
            for item in module.file.tree.items:
                if isinstance(item, tree.Function) and item.body is not None:
                    yield from _Body(module).function(item)


def loops(program: Program) -> Iterator[tuple[tree.For, Scope]]:
    """Yield the loops over ranges of the users' functions and tasks."""
    for module in program.modules:
        if is_users(module):
            for item in module.file.tree.items:
                if isinstance(item, tree.Function) and item.body is not None:
                    for node in nodes_of(item.body):
                        if isinstance(node, tree.For):
                            yield node, Scope(module)


class _Body:
    def __init__(self, module: Module) -> None:
        self.module = module

    def function(self, node: tree.Function) -> Iterator[tuple[tree.Builtin, Scope]]:
        scope = Scope(self.module)
        for parameter in node.parameters:
            scope.bind(parameter.name, Runtime(_type(parameter.type, scope)))
        assert node.body is not None
        yield from self.statement(node.body, scope)

    def statement(self, node: tree.Statement, scope: Scope) -> Iterator[tuple[tree.Builtin, Scope]]:
        if isinstance(node, tree.Block):
            inner = scope.child()
            for part in node.body:
                yield from self.statement(part, inner)
        elif isinstance(node, tree.Declaration):
            yield from self.inside(node.value, scope)
            scope.bind(node.name, _known(node, scope))
        elif isinstance(node, tree.If):
            yield from self.inside(node.condition, scope)
            chosen = _truth(node.condition, scope)
            for branch, wanted in ((node.then, True), (node.otherwise, False)):
                if branch is not None and chosen in (wanted, None):
                    yield from self.statement(branch, scope.child())
        elif isinstance(node, tree.While | tree.For):
            inner = scope.child()
            if isinstance(node, tree.For):
                inner.bind(node.element.name, Runtime(None))
                if node.index is not None:
                    inner.bind(node.index.name, Runtime(None))
            yield from self.statement(node.body, inner)
        else:
            yield from self.inside(node, scope)

    def inside(self, node: tree.Node | None, scope: Scope) -> Iterator[tuple[tree.Builtin, Scope]]:
        for part in nodes_of(node) if node is not None else ():
            if isinstance(part, tree.Builtin):
                yield part, scope


def _known(node: tree.Declaration, scope: Scope) -> Any:
    wanted = None if node.type is None else _type(node.type, scope)
    if node.value is not None:
        if node.kind == "const":
            try:
                return evaluate(node.value, scope, wanted)
            except (NotComptime, PolyloomError):
                pass
        wanted = wanted or type_of(node.value, scope)
    return Runtime(wanted)


def _type(node: tree.Expression, scope: Scope) -> types.Type | None:
    try:
        return resolve_type(node, scope)
    except PolyloomError:
        return None


def _truth(node: tree.Expression, scope: Scope) -> bool | None:
    try:
        return truth(node, scope)
    except (NotComptime, PolyloomError):
        return None


def value_of(node: tree.Expression, scope: Scope) -> values.Value | None:
    """Return the value of an expression that is known, else ``None``; of a ``var`` that at the start."""
    try:
        return evaluate(node, scope)
    except (NotComptime, PolyloomError):
        return None


_CHANGES = ("increment_dsd_offset", "set_dsd_base_addr", "set_dsd_length", "set_dsd_stride")


def type_of(node: tree.Expression, scope: Scope) -> types.Type | None:
    """Return the type of an expression, as far as it is known without lowering."""
    if isinstance(node, tree.Name):
        local = scope.local(node.name)
        if isinstance(local, Runtime):
            return local.payload if isinstance(local.payload, types.Type) else None
    if isinstance(node, tree.Builtin) and node.arguments:
        if node.name == "get_dsd":
            return _type(node.arguments[0], scope)
        if node.name in _CHANGES:
            return type_of(node.arguments[0], scope)
    known = value_of(node, scope)
    if known is not None:
        return known.type
    try:
        return place(node, scope).type.target
    except (NotComptime, PolyloomError):
        return None
