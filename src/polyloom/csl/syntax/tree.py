"""The syntax tree of CSL: immutable nodes, compared by identity, each with its span.

Types are expressions, as in the language. A name is not resolved here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from polyloom.diagnostics import Source, Span


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """Any part of a program."""

    span: Span


@dataclass(frozen=True, eq=False, slots=True)
class Expression(Node):
    """What has a value: a number, a type, a module, a descriptor, or nothing (``void``)."""


@dataclass(frozen=True, eq=False, slots=True)
class Integer(Expression):
    """``42``, ``0xff``, ``0b11``: a ``comptime_int``."""

    value: int


@dataclass(frozen=True, eq=False, slots=True)
class Float(Expression):
    """``1.5``, ``1e-3``: a ``comptime_float``."""

    value: float


@dataclass(frozen=True, eq=False, slots=True)
class String(Expression):
    """``"text"``, its escapes replaced."""

    value: str


@dataclass(frozen=True, eq=False, slots=True)
class Boolean(Expression):
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, eq=False, slots=True)
class Name(Expression):
    """An identifier."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class EnumLiteral(Expression):
    """``.name``: a member of the enum that the context asks for."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Builtin(Expression):
    """``@name(arguments)``; ``name`` without the ``@``."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Call(Expression):
    """``callee(arguments)``."""

    callee: Expression
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Field(Expression):
    """``base.name``."""

    base: Expression
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Index(Expression):
    """``base[i, j]``: one index per dimension."""

    base: Expression
    indices: tuple[Expression, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Dereference(Expression):
    """``base.*``."""

    base: Expression


UnaryOperator = Literal["-", "!", "~", "&"]
"""``&`` takes an address."""

BinaryOperator = Literal[
    "or", "and", "==", "!=", "<", ">", "<=", ">=", "&", "|", "^", "<<", ">>", "+", "-", "*", "/", "%"
]


@dataclass(frozen=True, eq=False, slots=True)
class Unary(Expression):
    """``-a``, ``!a``, ``~a``, ``&a``."""

    operator: UnaryOperator
    operand: Expression


@dataclass(frozen=True, eq=False, slots=True)
class Binary(Expression):
    """``a + b`` and the like."""

    operator: BinaryOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, eq=False, slots=True)
class IfExpression(Expression):
    """``if (condition) then else otherwise`` where a value is wanted; ``otherwise`` may be left out."""

    condition: Expression
    then: Expression
    otherwise: Expression | None


@dataclass(frozen=True, eq=False, slots=True)
class Prong(Node):
    """``1, 2 => body``; without cases ``else => body``. A value is an ``ExpressionStatement``."""

    cases: tuple[Expression, ...]
    body: Statement


@dataclass(frozen=True, eq=False, slots=True)
class Switch(Expression):
    """``switch (subject) { prongs }``, as an expression or a statement."""

    subject: Expression
    prongs: tuple[Prong, ...]


@dataclass(frozen=True, eq=False, slots=True)
class BlockExpression(Expression):
    """``label: { ... break :label value; ... }``, or ``{}``, which is the value of type ``void``."""

    block: Block


@dataclass(frozen=True, eq=False, slots=True)
class Comptime(Expression):
    """``comptime value``."""

    value: Expression


@dataclass(frozen=True, eq=False, slots=True)
class FieldValue(Node):
    """``.name = value`` inside a literal."""

    name: str
    value: Expression


@dataclass(frozen=True, eq=False, slots=True)
class StructLiteral(Expression):
    """``T{ .a = 1 }``; anonymous (``.{ .a = 1 }``) without a type. ``.{}`` is one without fields."""

    type: Expression | None
    fields: tuple[FieldValue, ...]


@dataclass(frozen=True, eq=False, slots=True)
class ListLiteral(Expression):
    """``[3]i16{ 1, 2, 3 }``; an anonymous tuple (``.{ RAMP, EAST }``) without a type."""

    type: Expression | None
    elements: tuple[Expression, ...]


@dataclass(frozen=True, eq=False, slots=True)
class TensorAccess(Expression):
    """``|i, j|{ 4, n } -> A[i, j]``: what a memory descriptor visits."""

    iterators: tuple[Name, ...]
    extents: tuple[Expression, ...]
    target: Expression


@dataclass(frozen=True, eq=False, slots=True)
class ArrayType(Expression):
    """``[2, n]f32``."""

    sizes: tuple[Expression, ...]
    element: Expression


@dataclass(frozen=True, eq=False, slots=True)
class PointerType(Expression):
    """``*T``, ``*const T``; ``many``: ``[*]T``, ``[*]const T``."""

    target: Expression
    is_const: bool
    many: bool


@dataclass(frozen=True, eq=False, slots=True)
class FunctionType(Expression):
    """``fn(u32) void``, ``task () void``."""

    kind: Literal["fn", "task"]
    parameters: tuple[Expression, ...]
    result: Expression


@dataclass(frozen=True, eq=False, slots=True)
class Member(Node):
    """A field of a struct or union (``type``, ``value``: its default) or a member of an enum (``value``)."""

    name: str
    type: Expression | None
    value: Expression | None


@dataclass(frozen=True, eq=False, slots=True)
class StructType(Expression):
    """``struct { a: u16, b: f32 = 0.0 }``; or a union; ``layout``: ``packed``, ``extern`` or empty."""

    kind: Literal["struct", "union"]
    layout: str
    members: tuple[Member, ...]


@dataclass(frozen=True, eq=False, slots=True)
class EnumType(Expression):
    """``enum(u16) { a, b = 3 }``."""

    tag: Expression | None
    members: tuple[Member, ...]


@dataclass(frozen=True, eq=False, slots=True)
class AnyType(Expression):
    """``anytype`` as the type of a parameter."""


@dataclass(frozen=True, eq=False, slots=True)
class Statement(Node):
    """What a block is made of."""


@dataclass(frozen=True, eq=False, slots=True)
class Block(Statement):
    """``{ ... }``; ``label: { ... }``; ``is_comptime``: after the word ``comptime``."""

    label: str | None
    body: tuple[Statement, ...]
    is_comptime: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Declaration(Statement):
    """``const``, ``var`` or ``param``, global or local.

    ``linkage``: ``export``, ``extern`` or empty. ``align`` in bytes, ``section`` and ``link_name`` are the
    arguments of ``align(...)``, ``linksection(...)`` and ``linkname(...)``.
    """

    kind: Literal["const", "var", "param"]
    name: str
    name_span: Span
    type: Expression | None
    value: Expression | None
    is_comptime: bool = False
    linkage: str = ""
    align: Expression | None = None
    section: Expression | None = None
    link_name: Expression | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Assign(Statement):
    """``target = value``, or ``target += value`` with ``operator`` ``+``."""

    operator: BinaryOperator | None
    target: Expression
    value: Expression


@dataclass(frozen=True, eq=False, slots=True)
class ExpressionStatement(Statement):
    """A call, a builtin, a switch; or the value of a prong."""

    expression: Expression


@dataclass(frozen=True, eq=False, slots=True)
class If(Statement):
    """``if (condition) then else otherwise``."""

    condition: Expression
    then: Statement
    otherwise: Statement | None
    is_comptime: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class While(Statement):
    """``label: while (condition) : (step) body``."""

    label: str | None
    condition: Expression
    step: Statement | None
    body: Statement
    is_comptime: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class For(Statement):
    """``for (sequence) |element, index| body``; ``sequence``: a range or an array."""

    label: str | None
    sequence: Expression
    element: Name
    index: Name | None
    body: Statement
    is_comptime: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Return(Statement):
    """``return value;``."""

    value: Expression | None


@dataclass(frozen=True, eq=False, slots=True)
class Break(Statement):
    """``break :label value;``."""

    label: str | None
    value: Expression | None


@dataclass(frozen=True, eq=False, slots=True)
class Continue(Statement):
    """``continue :label;``."""

    label: str | None


@dataclass(frozen=True, eq=False, slots=True)
class Parameter(Node):
    """A parameter of a function; its type may be ``AnyType``."""

    name: str
    type: Expression
    is_comptime: bool


@dataclass(frozen=True, eq=False, slots=True)
class Function(Node):
    """``fn`` or ``task``; ``body`` is absent after ``extern``. ``linkage`` as of a declaration."""

    kind: Literal["fn", "task"]
    name: str
    name_span: Span
    parameters: tuple[Parameter, ...]
    result: Expression
    body: Block | None
    linkage: str = ""
    is_inline: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class ComptimeBlock(Node):
    """A ``comptime { ... }`` at the top of a file."""

    block: Block


@dataclass(frozen=True, eq=False, slots=True)
class LayoutBlock(Node):
    """The ``layout { ... }`` of a program."""

    block: Block


Item = Declaration | Function | ComptimeBlock | LayoutBlock


@dataclass(frozen=True, eq=False, slots=True)
class File:
    """One file: its declarations, functions, tasks and blocks in the order of the text."""

    source: Source
    items: tuple[Item, ...]
