"""Combine operators of C: its operators and functions, and selections that are minima or maxima.

``e > x ? e : x`` is no ``fmax``: where ``e`` is NaN it keeps ``x``, and an ``x`` that is NaN stays. So with x
the accumulator and e the terms, in their order, there are two operators beside ``fmax``:

- a term is *taken where a comparison holds* (``if (e > x) x = e;``): terms that are NaN are passed over.
  Among numbers the operator is that of ``max``, with -inf in place of a term that is NaN, and an x that is
  NaN to begin with comes out. The operator is a ``CompareOp``.
- the accumulator is *kept where a comparison holds* (``x = x > e ? x : e;``): a term that is NaN is taken,
  and so is the one after it. What comes out is the largest of the terms behind the last NaN. As a function
  of two numbers this is not associative. With the knowledge whether a NaN was met it is (``resetting``).

Not in the papers.
"""

from __future__ import annotations

from dataclasses import replace

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Read,
    Select,
)
from polyloom.ir.host import Combiner
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType

ASSOCIATIVE = frozenset(
    {
        BinaryOp.ADD,
        BinaryOp.MULTIPLY,
        BinaryOp.MAXIMUM,
        BinaryOp.MINIMUM,
        BinaryOp.FMAX,
        BinaryOp.FMIN,
        BinaryOp.BIT_AND,
        BinaryOp.BIT_OR,
        BinaryOp.BIT_XOR,
    }
)
"""Floating-point sums and products are reassociated, as md_poly does."""

LARGER = frozenset({CompareOp.GT, CompareOp.GE})
NAN = float("nan")
"""One object, so that operators with this neutral element are equal."""

MET = ElementType.INT32
"""The type of what was met among terms: nothing, numbers, or a NaN."""
NOTHING, NUMBERS, NOT_A_NUMBER = (Constant(k, MET) for k in range(3))


def combiner(op: BinaryFunction | CompareOp, type_: ElementType) -> Combiner:
    """Return an operator on one value, with its neutral element.

    A ``CompareOp`` takes a term on the right where ``term op accumulator``.
    """
    left, right = Read(0, type_), Read(1, type_)
    if isinstance(op, CompareOp):
        return Combiner(
            name=name_of(op),
            results=(Select(Compare(op, right, left), right, left),),
            neutral=(neutral(op, type_),),
        )
    return Combiner(name=op.name, results=(Binary(op, left, right),), neutral=(neutral(op, type_),))


def in_order(operator: Combiner, op: BinaryFunction | CompareOp) -> Combiner:
    """Return an operator on floats whose operands keep their places; one that rounds is not associative."""
    return replace(operator, commutative=False, associative=isinstance(op, CompareOp))


def name_of(op: CompareOp) -> str:
    """Return how the operator that takes terms by a comparison is called."""
    return "greater" if op in LARGER else "less"


def resetting(keeps: CompareOp, type_: ElementType) -> Combiner:
    """Return the operator that keeps the accumulator where ``term keeps accumulator``, else takes the term.

    It has two values: the result, and what was met (``met``). What was met on the right decides whether the
    left one counts: beyond a NaN it does not.
    """
    left, right = Read(0, type_), Read(2, type_)
    met_left, met_right = Read(1, MET), Read(3, MET)
    kept = Binary(BinaryOp.AND, _is(met_right, NUMBERS), Compare(keeps, right, left))
    value = Select(Binary(BinaryOp.OR, _is(met_right, NOTHING), kept), left, right)
    met = Binary(BinaryOp.MAXIMUM, met_left, met_right)
    name = "less or NaN" if keeps in LARGER else "greater or NaN"
    opposite = BinaryOp.MINIMUM if keeps in LARGER else BinaryOp.MAXIMUM
    return Combiner(
        name=name, results=(value, met), neutral=(neutral(opposite, type_), NOTHING.value), commutative=False
    )


def met(term: Expression) -> Expression:
    """Return what is met at a term."""
    return Select(Compare(CompareOp.EQ, term, term), NUMBERS, NOT_A_NUMBER)


def _is(what: Expression, constant: Constant) -> Expression:
    return Compare(CompareOp.EQ, what, constant)


def neutral(op: BinaryFunction | CompareOp, type_: ElementType) -> float | int:
    """Return the value that changes nothing: the lowest for ``max``, for sums of floats -0.

    A sum of C whose terms are all -0 is -0; one of LAIR starts from 0 (``ir/statements.neutral``).
    """
    if op is BinaryOp.ADD and type_.is_float:
        return -0.0
    if op in (BinaryOp.FMAX, BinaryOp.FMIN):
        return NAN
    if op is BinaryOp.MAXIMUM or op in LARGER:
        return type_.lowest
    if op is BinaryOp.MINIMUM or isinstance(op, CompareOp):
        return type_.highest
    if op is BinaryOp.BIT_AND:
        return -1 if type_.value.startswith("int") else type_.highest
    return 1 if op is BinaryOp.MULTIPLY else 0
