"""Scalar functions: what a statement computes at one point of its domain.

Every expression has one element type. Operands of one operation have the same type; conversions are
written (``Convert``). Comparisons have the type BOOL, which only ``Select`` takes.
"""

from __future__ import annotations

from collections.abc import Iterator as Iterator_
from dataclasses import dataclass
from enum import Enum
from math import copysign
from typing import cast

from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.scalar_functions.table import BinaryOp as BinaryOp
from polyloom.ir.scalar_functions.table import UnaryOp as UnaryOp
from polyloom.ir.types import ElementType


class CompareOp(Enum):
    """A comparison; the value is its sign in LAIR."""

    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "=="
    NE = "!="

    @property
    def is_equality(self) -> bool:
        """Whether it asks for equal or unequal values, of which neither is the larger."""
        return self in (CompareOp.EQ, CompareOp.NE)

    @property
    def turned(self) -> CompareOp:
        """The comparison of b with a that says the same as this one of a with b."""
        return _TURNED.get(self, self)

    @property
    def opposite(self) -> CompareOp:
        """The comparison that holds where this one does not: of integers, and of floats without a NaN."""
        return _OPPOSITE[self]


_TURNED = {
    CompareOp.LT: CompareOp.GT,
    CompareOp.LE: CompareOp.GE,
    CompareOp.GT: CompareOp.LT,
    CompareOp.GE: CompareOp.LE,
}
_OPPOSITE = {
    CompareOp.LT: CompareOp.GE,
    CompareOp.LE: CompareOp.GT,
    CompareOp.GT: CompareOp.LE,
    CompareOp.GE: CompareOp.LT,
    CompareOp.EQ: CompareOp.NE,
    CompareOp.NE: CompareOp.EQ,
}


class Operators:
    """Operators that build nodes: ``x * 2 + y``, ``x < 0``; a number takes the type of the other operand.

    ``==`` compares expressions themselves, as in every dataclass.
    """

    def __add__(self, other: Operand) -> Expression:
        return _binary(BinaryOp.ADD, self, other)

    def __radd__(self, other: Number) -> Expression:
        return _binary(BinaryOp.ADD, other, self)

    def __sub__(self, other: Operand) -> Expression:
        return _binary(BinaryOp.SUBTRACT, self, other)

    def __rsub__(self, other: Number) -> Expression:
        return _binary(BinaryOp.SUBTRACT, other, self)

    def __mul__(self, other: Operand) -> Expression:
        return _binary(BinaryOp.MULTIPLY, self, other)

    def __rmul__(self, other: Number) -> Expression:
        return _binary(BinaryOp.MULTIPLY, other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return _binary(BinaryOp.DIVIDE, self, other)

    def __rtruediv__(self, other: Number) -> Expression:
        return _binary(BinaryOp.DIVIDE, other, self)

    def __neg__(self) -> Expression:
        return Unary(UnaryOp.NEGATE, cast(Expression, self))

    def __lt__(self, other: Operand) -> Expression:
        return Compare(CompareOp.LT, *paired(self, other))

    def __le__(self, other: Operand) -> Expression:
        return Compare(CompareOp.LE, *paired(self, other))

    def __gt__(self, other: Operand) -> Expression:
        return Compare(CompareOp.GT, *paired(self, other))

    def __ge__(self, other: Operand) -> Expression:
        return Compare(CompareOp.GE, *paired(self, other))


def paired(a: object, b: object) -> tuple[Expression, Expression]:
    """Return two operands as expressions; a number takes the type of the other one."""
    left, right = cast(Operand, a), cast(Operand, b)
    if isinstance(left, float | int):
        assert not isinstance(right, float | int), "two numbers"
        return Constant(left, right.type), right
    return left, Constant(right, left.type) if isinstance(right, float | int) else right


def _binary(op: BinaryFunction, a: object, b: object) -> Expression:
    return Binary(op, *paired(a, b))


@dataclass(frozen=True)
class Read(Operators):
    """The element that the statement's read number ``position`` accesses at this point."""

    position: int
    type: ElementType


@dataclass(frozen=True)
class Constant(Operators):
    """A literal. ``value`` is exact in Python; it is rounded to ``type`` when it is used.

    0.0 and -0.0 are two literals, which Python's ``==`` does not tell apart.
    """

    value: float | int
    type: ElementType

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        same = (self.value, self.type) == (other.value, other.type)
        return same and (self.value != 0 or copysign(1, self.value) == copysign(1, other.value))

    def __hash__(self) -> int:
        return hash((self.value, self.type))


@dataclass(frozen=True)
class Iterator(Operators):
    """The value of the domain's dimension ``dimension`` at this point (C has it, LAIR has not)."""

    dimension: int
    type: ElementType


@dataclass(frozen=True)
class ParameterValue(Operators):
    """The value of an integer parameter or host iterator (host programs have them, LAIR has not)."""

    name: str
    type: ElementType


@dataclass(frozen=True)
class Unary(Operators):
    """``op(operand)``."""

    op: UnaryFunction
    operand: Expression

    @property
    def type(self) -> ElementType:
        """The operand's type."""
        return self.operand.type


@dataclass(frozen=True)
class Binary(Operators):
    """``left op right``."""

    op: BinaryFunction
    left: Expression
    right: Expression

    @property
    def type(self) -> ElementType:
        """The operands' type."""
        return self.left.type


@dataclass(frozen=True)
class Compare(Operators):
    """``left op right``, a truth value."""

    op: CompareOp
    left: Expression
    right: Expression

    @property
    def type(self) -> ElementType:
        """BOOL."""
        return ElementType.BOOL


@dataclass(frozen=True)
class Select(Operators):
    """``condition ? then : otherwise``; both sides are evaluated."""

    condition: Expression
    then: Expression
    otherwise: Expression

    @property
    def type(self) -> ElementType:
        """The sides' type."""
        return self.then.type


@dataclass(frozen=True)
class Convert(Operators):
    """``type(operand)``: floats round to nearest even, float to integer truncates, integers wrap."""

    type: ElementType
    operand: Expression


@dataclass(frozen=True)
class Local(Operators):
    """What a variable of the procedure around holds at this step."""

    name: str
    type: ElementType


@dataclass(frozen=True)
class Assign:
    """``local = value``."""

    local: Local
    value: Expression


@dataclass(frozen=True)
class When:
    """``if (condition) body else otherwise``."""

    condition: Expression
    body: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()


@dataclass(frozen=True)
class While:
    """``while (condition) body``: how often, data decide."""

    condition: Expression
    body: tuple[Step, ...]


Step = Assign | When | While


@dataclass(frozen=True)
class Procedure(Operators):
    """What ``result`` holds when the steps have been carried out, in their order, each variable from 0 on.

    An operand of ``and``, ``or`` or a selection is evaluated only where it is asked for, so its reads may
    be of elements that do not exist elsewhere. Subscripts of reads may speak of variables.
    Source: md_poly, Sec. 3.2.2, Listing 2 (a scalar function made of statements).
    """

    body: tuple[Step, ...]
    result: Local

    @property
    def type(self) -> ElementType:
        """The type of the result."""
        return self.result.type


Expression = (
    Read
    | Constant
    | Iterator
    | ParameterValue
    | Unary
    | Binary
    | Compare
    | Select
    | Convert
    | Local
    | Procedure
)
Number = float | int
Operand = Expression | Number


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands, in the order in which they are written."""
    match expression:
        case Read() | Constant() | Iterator() | ParameterValue() | Local():
            return ()
        case Procedure(body=body):
            return tuple(values_of_steps(body))
        case Unary(operand=x) | Convert(operand=x):
            return (x,)
        case Binary(left=a, right=b) | Compare(left=a, right=b):
            return (a, b)
        case Select(condition=c, then=a, otherwise=b):
            return (c, a, b)


def all_steps(steps: tuple[Step, ...]) -> Iterator_[Step]:
    """Yield steps and those inside of them, outer ones first."""
    for step in steps:
        yield step
        if isinstance(step, When):
            yield from all_steps((*step.body, *step.otherwise))
        elif isinstance(step, While):
            yield from all_steps(step.body)


def values_of_steps(steps: tuple[Step, ...]) -> Iterator_[Expression]:
    """Yield the expressions of steps, in the order in which they are written."""
    for step in all_steps(steps):
        yield step.value if isinstance(step, Assign) else step.condition


def locals_of(steps: tuple[Step, ...]) -> dict[str, Local]:
    """Return the variables that steps assign to, by their names."""
    return {step.local.name: step.local for step in all_steps(steps) if isinstance(step, Assign)}


def has_procedure(*expressions: Expression | None) -> bool:
    """Whether any of these contains steps."""
    parts = (part for e in expressions if e is not None for part in walk(e))
    return any(isinstance(part, Procedure) for part in parts)


def walk(expression: Expression) -> Iterator_[Expression]:
    """Yield the expression and everything inside it, outside first."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += reversed(children(part))


def varying_parts(expression: Expression) -> Iterator_[Expression]:
    """Yield the parts that may differ from point to point, inside first: those of elements and iterators."""
    varies = set[int]()
    for part in reversed(list(walk(expression))):
        if isinstance(part, Read | Iterator) or any(id(inner) in varies for inner in children(part)):
            varies.add(id(part))
            yield part


def may_trap(expression: Expression) -> bool:
    """Whether a value may be computed only where it is asked for: integers may be divided by zero."""
    divides = (BinaryOp.DIVIDE, BinaryOp.REMAINDER)
    return any(isinstance(p, Binary) and p.op in divides and not p.type.is_float for p in walk(expression))


def instructions(expression: Expression) -> float:
    """Return about how many instructions an expression takes on a CPU, reads not counted; an estimate."""
    return sum(map(_instructions, walk(expression)))


def _instructions(part: Expression) -> float:
    match part:
        case Unary(op=op):
            return op.instructions
        case Binary(op=op):
            return op.instructions
        case _:
            return 1.0 if children(part) else 0.0
