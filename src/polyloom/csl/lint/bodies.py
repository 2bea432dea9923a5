"""Function bodies, walked with what is known of their names, to find the operations in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any
from weakref import WeakKeyDictionary

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


Part = tuple[tree.Node, Scope]


def parts(program: Program) -> tuple[Part, ...]:
    """Return the nodes of the users' functions and tasks that run, each with what is known of names there.

    What runs: what directives name, and what that mentions. Branches that are not taken on this architecture
    or with these parameters are left out.
    """
    return tuple(part for part in all_parts(program) if is_users(part[1].module))


def all_parts(program: Program) -> tuple[Part, ...]:
    """Return the same with those of libraries."""
    return _reached(program)[0]


def used_variables(program: Program) -> set[values.Variable]:
    """Return the globals that what runs mentions, or that point at what is mentioned."""
    return _reached(program)[1]


def operations(program: Program) -> Iterator[tuple[tree.Builtin, Scope]]:
    """Yield the builtins among the parts of a program."""
    for node, scope in parts(program):
        if isinstance(node, tree.Builtin):
            yield node, scope


def loops(program: Program) -> Iterator[tuple[tree.For, Scope]]:
    """Yield the loops over ranges and arrays among the parts of a program."""
    for node, scope in parts(program):
        if isinstance(node, tree.For):
            yield node, scope


def parts_from(function: values.FunctionValue) -> tuple[Part, ...]:
    """Return the parts of a user's function or task, and of what it mentions."""
    return tuple(part for part in _closure([function])[0] if is_users(part[1].module))


_KNOWN: WeakKeyDictionary[Program, tuple[tuple[Part, ...], set[values.Variable]]] = WeakKeyDictionary()


def _reached(program: Program) -> tuple[tuple[Part, ...], set[values.Variable]]:
    if program not in _KNOWN:
        _KNOWN[program] = _closure([a for d in program.directives for a in d.arguments])
    return _KNOWN[program]


def _closure(waiting: list[object]) -> tuple[tuple[Part, ...], set[values.Variable]]:
    """Return the parts of functions that run, and the globals, that these and what they mention are."""
    found: list[Part] = []
    seen: set[object] = set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, values.FunctionValue):
            key = (part.module.number, part.function)
            if key not in seen and part.function.body is not None:
                seen.add(key)
                body = list(_Body(part.module).function(part.function))
                found += body
                waiting += [m for node, scope in body if (m := _mentioned(node, scope)) is not None]
        elif isinstance(part, values.Variable):
            if part not in seen:
                seen.add(part)
                waiting.append(part.value)
        elif isinstance(part, values.Value) and not isinstance(part, values.ModuleValue):
            waiting += [getattr(part, f.name) for f in fields(part)]  # type: ignore[arg-type]
        elif isinstance(part, tuple):
            waiting += part
    return tuple(found), {v for v in seen if isinstance(v, values.Variable)}


def _mentioned(node: tree.Node, scope: Scope) -> object:
    """Return the global or function that a name stands for."""
    try:
        if isinstance(node, tree.Name) and scope.local(node.name) is None:
            return scope.module.member(node.name)
        if isinstance(node, tree.Field):
            base = evaluate(node.base, scope)
            if isinstance(base, values.ModuleValue):
                return base.module.member(node.name)
    except (NotComptime, PolyloomError):
        return None
    return None


class _Body:
    def __init__(self, module: Module) -> None:
        self.module = module

    def function(self, node: tree.Function) -> Iterator[tuple[tree.Node, Scope]]:
        scope = Scope(self.module)
        for parameter in node.parameters:
            scope.bind(parameter.name, Runtime(_type(parameter.type, scope)))
        assert node.body is not None
        yield from self.statement(node.body, scope)

    def statement(self, node: tree.Statement, scope: Scope) -> Iterator[tuple[tree.Node, Scope]]:
        if isinstance(node, tree.Block):
            inner = scope.child()
            for part in node.body:
                yield from self.statement(part, inner)
        elif isinstance(node, tree.Declaration):
            yield node, scope
            yield from self.inside(node.value, scope)
            scope.bind(node.name, _known(node, scope))
        elif isinstance(node, tree.If):
            yield from self.inside(node.condition, scope)
            chosen = _truth(node.condition, scope)
            for branch, wanted in ((node.then, True), (node.otherwise, False)):
                if branch is not None and chosen in (wanted, None):
                    yield from self.statement(branch, scope.child())
        elif isinstance(node, tree.While | tree.For):
            yield node, scope
            yield from self.inside(node.sequence if isinstance(node, tree.For) else node.condition, scope)
            if isinstance(node, tree.While):
                yield from self.inside(node.step, scope)
            inner = scope.child()
            if isinstance(node, tree.For):
                inner.bind(node.element.name, Runtime(None))
                if node.index is not None:
                    inner.bind(node.index.name, Runtime(None))
            yield from self.statement(node.body, inner)
        else:
            yield from self.inside(node, scope)

    def inside(self, node: tree.Node | None, scope: Scope) -> Iterator[tuple[tree.Node, Scope]]:
        for part in nodes_of(node) if node is not None else ():
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
