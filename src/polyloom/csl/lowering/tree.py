"""The typed tree of a PE program: functions of statements, over expressions with a type and places in memory.

Everything that is known at compile time is gone: parameters are constants, branches on them are taken,
functions are specialised, DSDs are descriptors. Implicit conversions are explicit nodes (``Convert``). A
pointer is the byte address of something in the memory of the PE, 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from polyloom.csl.types import Type
from polyloom.diagnostics import Span

# ---- Expressions


@dataclass(frozen=True)
class Constant:
    """A number, a bool, the number of a color, queue or task, or the byte address of a constant pointer."""

    type: Type
    value: int | float | bool


@dataclass(frozen=True)
class Address:
    """The byte address of something in memory that has a name, plus bytes."""

    type: Type
    symbol: str
    offset: int = 0


@dataclass(frozen=True)
class Local:
    """A variable that lives in a register: its address is never taken."""

    type: Type
    name: str


@dataclass(frozen=True)
class Global:
    """A variable of the module that has no address: a DSD."""

    type: Type
    name: str


@dataclass(frozen=True)
class Load:
    """What lies at a byte address; an error if nothing was written there."""

    type: Type
    address: Expression
    text: str
    """What the program calls it, for messages."""
    span: Span


@dataclass(frozen=True)
class Offset:
    """The address of an element: ``base + index * size``; an error unless ``0 <= index < count``.

    ``count`` is None where the number of elements is unknown (``[*]T``). ``fixed``: the index, or what is
    added in it, where a loop around does not change that.
    """

    type: Type
    base: Expression
    index: Expression
    size: int
    count: int | None
    text: str
    span: Span
    fixed: Expression | None = None


@dataclass(frozen=True)
class Binary:
    """``+ - * / % & | ^ << >> == != < <= > >= and or`` of two operands of one type; integers wrap around."""

    type: Type
    operator: str
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True)
class Unary:
    """``- ! ~``."""

    type: Type
    operator: str
    operand: Expression


@dataclass(frozen=True)
class Convert:
    """A number as another type of numbers: ``@as``, or a widening that the language does by itself."""

    type: Type
    operand: Expression


@dataclass(frozen=True)
class Bits:
    """The same bits as another type of the same width."""

    type: Type
    operand: Expression


@dataclass(frozen=True)
class Select:
    """``if (condition) a else b`` as a value."""

    type: Type
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True)
class Call:
    """A function of the program."""

    type: Type
    function: str
    arguments: tuple[Expression, ...]
    is_inline: bool = False
    """Whether a compiler puts the body here: the call costs nothing by itself."""


@dataclass(frozen=True)
class Field:
    """A field of a struct value."""

    type: Type
    operand: Expression
    name: str


@dataclass(frozen=True)
class StructValue:
    """A struct of run-time values."""

    type: Type
    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Native:
    """A function or macro of the contract (``csl.h``); ``cost``: its scalar work beyond its arguments."""

    type: Type
    name: str
    arguments: tuple[Expression | str, ...]
    """Expressions, or C text as it stands."""
    cost: Mapping[str, int] = field(default_factory=dict)
    is_text: bool = False
    """Whether ``name`` is C as it stands, not a function."""
    site: str | None = None
    """What a message calls the place; the function then takes one more argument, the place."""
    span: Span | None = None


@dataclass(frozen=True)
class Braces:
    """A compound literal of the contract: ``&(csl_options){.async = true}``."""

    type: Type
    prefix: str
    items: tuple[tuple[str, Expression | str], ...]
    """Names of members, empty in arrays, and what they are."""


Expression = (
    Constant
    | Address
    | Local
    | Global
    | Load
    | Offset
    | Binary
    | Unary
    | Convert
    | Bits
    | Select
    | Call
    | Field
    | StructValue
    | Native
    | Braces
)

# ---- Statements


@dataclass(frozen=True)
class Declare:
    """A local variable with its first value."""

    name: str
    type: Type
    value: Expression


@dataclass(frozen=True)
class Assign:
    """A new value for a local or global variable without an address."""

    target: Local | Global
    value: Expression


@dataclass(frozen=True)
class AssignField:
    """A new value for a field of a struct in a local variable."""

    target: Local
    name: str
    value: Expression


@dataclass(frozen=True)
class Store:
    """Writes a value to a byte address."""

    type: Type
    address: Expression
    value: Expression
    text: str
    span: Span


@dataclass(frozen=True)
class Copy:
    """Copies bytes, and whether they are initialised, from one address to another."""

    target: Expression
    source: Expression
    size: int
    text: str


@dataclass(frozen=True)
class Forget:
    """Makes bytes poison: a local variable without a first value begins to live."""

    address: Expression
    size: int


@dataclass(frozen=True)
class Evaluate:
    """An expression for what it does."""

    value: Expression


@dataclass(frozen=True)
class If:
    """``if (condition) then else otherwise``."""

    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class While:
    """``while (condition) : (step) body``; ``continue`` goes to ``step``.

    ``runs``: the condition is known to hold at first.
    """

    condition: Expression
    step: tuple[Statement, ...]
    body: tuple[Statement, ...]
    label: str
    runs: bool = False


@dataclass(frozen=True)
class Switch:
    """``switch``: statements for each set of numbers, and for all others."""

    value: Expression
    cases: tuple[tuple[tuple[int, ...], tuple[Statement, ...]], ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class Block:
    """Statements with names of their own; ``leave`` of its label goes to its end."""

    body: tuple[Statement, ...]
    label: str | None = None


@dataclass(frozen=True)
class Jump:
    """To the end of a block or loop (``break``), or to the step of a loop (``continue``)."""

    label: str
    again: bool = False


@dataclass(frozen=True)
class Return:
    """Leaves the function."""

    value: Expression | None = None


Statement = (
    Declare
    | Assign
    | AssignField
    | Store
    | Copy
    | Forget
    | Evaluate
    | If
    | While
    | Switch
    | Block
    | Jump
    | Return
)

# ---- Functions and programs


@dataclass(frozen=True)
class Function:
    """A specialised function: parameters that are known at compile time are gone."""

    name: str
    source_name: str
    parameters: tuple[tuple[str, Type], ...]
    result: Type
    body: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True)
class DsdVariable:
    """A module variable that holds a DSD, with its first value."""

    name: str
    type: Type
    value: Expression | None
