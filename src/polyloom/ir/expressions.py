"""Scalar functions: what a statement computes at one point of its domain.

Every expression has one element type. Operands of one operation have the same type; conversions are
written (``Convert``). Comparisons have the type BOOL, which only ``Select`` takes.
"""

from __future__ import annotations

from collections.abc import Iterator as Iterator_
from dataclasses import dataclass
from enum import Enum

from polyloom.ir.types import ElementType


class UnaryOp(Enum):
    """A function of one argument; the value is its name in LAIR."""

    NEGATE = "-"
    EXP = "exp"
    LOG = "log"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    TANH = "tanh"
    SIGMOID = "sigmoid"
    ERF = "erf"
    ABS = "abs"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"
    """To the nearest integer, ties to even."""
    TRUNC = "trunc"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    SINH = "sinh"
    COSH = "cosh"
    EXP2 = "exp2"
    LOG2 = "log2"
    LOG10 = "log10"
    CBRT = "cbrt"
    COMPLEMENT = "~"
    """Of integers, bit by bit."""
    NOT = "!"
    """Of a truth value."""


EXACT_UNARY = frozenset(
    {
        UnaryOp.NEGATE,
        UnaryOp.ABS,
        UnaryOp.FLOOR,
        UnaryOp.CEIL,
        UnaryOp.ROUND,
        UnaryOp.TRUNC,
        UnaryOp.COMPLEMENT,
        UnaryOp.NOT,
    }
)
"""Functions whose result has no rounding error."""


class BinaryOp(Enum):
    """A function of two arguments; the value is its name or sign in LAIR."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    """Of floats: rounded to nearest. Of integers: towards zero, as in C; by zero it gives 0."""
    POWER = "pow"
    MAXIMUM = "max"
    """NaN propagates."""
    MINIMUM = "min"
    """NaN propagates."""
    FMAX = "fmax"
    """The operand that is no NaN, as in C."""
    FMIN = "fmin"
    """The operand that is no NaN, as in C."""
    REMAINDER = "%"
    """Of integers, with the sign of the first, as in C (by zero it gives 0); of floats, C's ``fmod``."""
    ATAN2 = "atan2"
    HYPOT = "hypot"
    BIT_AND = "&"
    BIT_OR = "|"
    BIT_XOR = "^"
    SHIFT_LEFT = "<<"
    SHIFT_RIGHT = ">>"
    """Of a signed integer: with its sign."""
    AND = "and"
    """Of truth values."""
    OR = "or"
    """Of truth values."""


class CompareOp(Enum):
    """A comparison; the value is its sign in LAIR."""

    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "=="
    NE = "!="


@dataclass(frozen=True)
class Read:
    """The element that the statement's read number ``position`` accesses at this point."""

    position: int
    type: ElementType


@dataclass(frozen=True)
class Constant:
    """A literal. ``value`` is exact in Python; it is rounded to ``type`` when it is used."""

    value: float | int
    type: ElementType


@dataclass(frozen=True)
class Iterator:
    """The value of the domain's dimension ``dimension`` at this point (C has it, LAIR has not)."""

    dimension: int
    type: ElementType


@dataclass(frozen=True)
class ParameterValue:
    """The value of an integer parameter or host iterator (host programs have them, LAIR has not)."""

    name: str
    type: ElementType


@dataclass(frozen=True)
class Unary:
    """``op(operand)``."""

    op: UnaryOp
    operand: Expression

    @property
    def type(self) -> ElementType:
        """The operand's type."""
        return self.operand.type


@dataclass(frozen=True)
class Binary:
    """``left op right``."""

    op: BinaryOp
    left: Expression
    right: Expression

    @property
    def type(self) -> ElementType:
        """The operands' type."""
        return self.left.type


@dataclass(frozen=True)
class Compare:
    """``left op right``, a truth value."""

    op: CompareOp
    left: Expression
    right: Expression

    @property
    def type(self) -> ElementType:
        """BOOL."""
        return ElementType.BOOL


@dataclass(frozen=True)
class Select:
    """``condition ? then : otherwise``; both sides are evaluated."""

    condition: Expression
    then: Expression
    otherwise: Expression

    @property
    def type(self) -> ElementType:
        """The sides' type."""
        return self.then.type


@dataclass(frozen=True)
class Convert:
    """``type(operand)``: floats round to nearest even, float to integer truncates, integers wrap."""

    type: ElementType
    operand: Expression


Expression = Read | Constant | Iterator | ParameterValue | Unary | Binary | Compare | Select | Convert


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands, in the order in which they are written."""
    match expression:
        case Read() | Constant() | Iterator() | ParameterValue():
            return ()
        case Unary(operand=x) | Convert(operand=x):
            return (x,)
        case Binary(left=a, right=b) | Compare(left=a, right=b):
            return (a, b)
        case Select(condition=c, then=a, otherwise=b):
            return (c, a, b)


def walk(expression: Expression) -> Iterator_[Expression]:
    """Yield the expression and everything inside it, outside first."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += reversed(children(part))
