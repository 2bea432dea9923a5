"""The syntax tree of a LAIR file: what was written, with its place, and nothing concluded from it.

Two trees are equal when the same was written, wherever it stands: spans take no part in equality.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from polyloom.diagnostics import Source, Span


@dataclass(frozen=True)
class Name:
    """A name, where it is used or introduced."""

    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Number:
    """A literal, never negative; it has no type of its own."""

    value: int | float
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Element:
    """``tensor[index]...[index]`` with at least one index."""

    tensor: Name
    indices: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Operation:
    """``-a`` (one operand), or ``a op b`` with op one of ``+ - * / % < <= > >= == !=``."""

    operator: str
    operands: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Call:
    """``function(argument, ...)``: a scalar function or a conversion."""

    function: Name
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Choice:
    """``condition ? then : otherwise``."""

    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span = field(compare=False, repr=False)


Expression = Name | Number | Element | Operation | Call | Choice


@dataclass(frozen=True)
class Declaration:
    """``type name[extent]...[extent]``; rank 0 without extents."""

    type: Name
    name: Name
    extents: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Statement:
    """``all (iterators) in (extents) write operator expression``; a single point without ``all``."""

    iterators: tuple[Name, ...]
    extents: tuple[Expression, ...]
    write: Name | Element
    operator: str
    expression: Expression
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Invocation:
    """``(outputs) = callee<types>(sizes)(arguments)``; None where a list is not written."""

    outputs: tuple[Name, ...]
    callee: Name
    types: tuple[Name, ...] | None
    sizes: tuple[Expression, ...] | None
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class TypeParameter:
    """``T`` or ``T=float16``."""

    name: Name
    default: Name | None


@dataclass(frozen=True)
class Node:
    """``lair name<types>(sizes): inputs -> outputs { statements }``."""

    name: Name
    type_parameters: tuple[TypeParameter, ...]
    size_parameters: tuple[Name, ...]
    inputs: tuple[Declaration, ...]
    outputs: tuple[Declaration, ...]
    body: tuple[Declaration | Statement, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Graph:
    """``graph name<types>(sizes): inputs -> outputs { invocations }``."""

    name: Name
    type_parameters: tuple[TypeParameter, ...]
    size_parameters: tuple[Name, ...]
    inputs: tuple[Declaration, ...]
    outputs: tuple[Declaration, ...]
    body: tuple[Declaration | Invocation, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Module:
    """A whole file."""

    items: tuple[Node | Graph, ...]
    source: Source = field(compare=False, repr=False)


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the parts of an expression, in the order in which they are written."""
    match expression:
        case Name() | Number():
            return ()
        case Element(indices=parts) | Operation(operands=parts) | Call(arguments=parts):
            return parts
        case Choice(condition=c, then=a, otherwise=b):
            return (c, a, b)


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and everything inside it, outside first, without recursion."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(children(current)))
