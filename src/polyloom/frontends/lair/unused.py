"""Warnings: parameters, inputs, iterators and tensors that nothing uses.

They are no errors: a program with them has a meaning. ``lower`` does not raise them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyloom.diagnostics import Diagnostic, Severity
from polyloom.frontends.lair.lower import choose
from polyloom.frontends.lair.lowering.scope import declarations
from polyloom.frontends.lair.lowering.statements import target
from polyloom.frontends.lair.syntax.tree import (
    Call,
    Declaration,
    Element,
    Expression,
    Graph,
    Invocation,
    Module,
    Name,
    Node,
    Statement,
    walk,
)


def unused(module: Module, node: str | None = None) -> tuple[Diagnostic, ...]:
    """Return a warning ``lair-unused`` for each unused name of what ``lower`` would lower.

    ``node``: as for ``lower``. What the node calls is not looked into.
    """
    item = choose(module, node)
    found = [*_parameters(item), *_tensors(item), *_iterators(item)]
    return tuple(_warning(name, what) for name, what in sorted(found, key=lambda pair: pair[0].span.start))


def _warning(name: Name, what: str) -> Diagnostic:
    message = f"the {what} `{name.text}` is never used"
    return Diagnostic(Severity.WARNING, "lair-unused", message, name.span, "", (), ("remove it",))


def _parameters(item: Node | Graph) -> Iterator[tuple[Name, str]]:
    used = {d.type.text for d in declarations(item)} | _mentioned(_all_expressions(item))
    calls = [part for part in item.body if isinstance(part, Invocation)]
    used |= {name.text for call in calls for name in call.types or ()}
    parameters = [*(p.name for p in item.type_parameters), *item.size_parameters]
    yield from ((name, "parameter") for name in parameters if name.text not in used)


def _tensors(item: Node | Graph) -> Iterator[tuple[Name, str]]:
    read = _read(item)
    outputs = {d.name.text for d in item.outputs}
    yield from ((d.name, "input") for d in item.inputs if d.name.text not in read)
    for written in map(_written, item.body):
        if not any(name.text in read | outputs for name in written):
            yield from ((name, "tensor") for name in written)


def _iterators(item: Node | Graph) -> Iterator[tuple[Name, str]]:
    for part in item.body:
        if isinstance(part, Statement):
            used = _mentioned([part.write, part.expression])
            yield from ((name, "iterator") for name in part.iterators if name.text not in used)


def _written(part: Declaration | Statement | Invocation) -> tuple[Name, ...]:
    match part:
        case Statement():
            return (target(part),)
        case Invocation():
            return part.outputs
        case Declaration():
            return ()


def _read(item: Node | Graph) -> set[str]:
    statements = [part.expression for part in item.body if isinstance(part, Statement)]
    arguments = [a for part in item.body if isinstance(part, Invocation) for a in part.arguments]
    return _mentioned([*statements, *arguments])


def _all_expressions(item: Node | Graph) -> Iterator[Expression]:
    for declaration in declarations(item):
        yield from declaration.extents
    for part in item.body:
        match part:
            case Statement():
                yield from (*part.extents, part.write, part.expression)
            case Invocation():
                yield from (*(part.sizes or ()), *part.arguments)
            case Declaration():
                pass


def _mentioned(expressions: Iterable[Expression]) -> set[str]:
    """Return the names in expressions: tensors, iterators, parameters, conversions to type parameters."""
    found: set[str] = set()
    for part in (p for expression in expressions for p in walk(expression)):
        match part:
            case Name(text=text) | Element(tensor=Name(text=text)) | Call(function=Name(text=text)):
                found.add(text)
            case _:
                pass
    return found
