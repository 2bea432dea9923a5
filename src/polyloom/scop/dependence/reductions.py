"""Updates: statements that combine a term into the element that they write.

Before: ``C[i][j] = C[i][j] + A[i][k] * B[k][j]``. After: operator ``+``, term ``A[i][k] * B[k][j]``.
Syntax only; whether the order of updates may change is for the dependences to say.

Not in the papers: md_poly leaves the recognition of combine operators to the user (Sec. 3.2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Read,
    Select,
    Unary,
    UnaryOp,
    may_trap,
)
from polyloom.ir.host import Combiner
from polyloom.ir.rebuild import read_positions
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType
from polyloom.scop.dependence.combiners import ASSOCIATIVE, LARGER, combiner, in_order, neutral, resetting
from polyloom.scop.model import ScopAccess, ScopStatement
from polyloom.scop.rewrite import moved_reads

Operator = BinaryFunction | CompareOp
"""A sign of C, or the comparison with which a term takes the accumulator's place."""


@dataclass(frozen=True, eq=False)
class Update:
    """``target = target op term``; ``accumulators``: the positions that read the target.

    ``op``: an operator whose terms may change places; else the name of one, or of a function of the source.
    """

    op: Operator | str
    combiner: Combiner
    term: Expression
    accumulators: frozenset[int]


def update_of(statement: ScopStatement, *, strict: bool = False) -> Update | None:
    """Return what a statement combines into its target; None where it is no update.

    ``strict``: operations on floats in the order and the form of the source alone.
    """
    places = first_reads(statement)
    accumulators = frozenset(k for k in places if same_element(statement, statement.reads[k]))
    if not accumulators:
        return None
    accumulator = frozenset(places[k] for k in accumulators)
    value = moved_reads(statement.value, places)
    condition = None if statement.condition is None else moved_reads(statement.condition, places)
    found = _match(
        value, condition, accumulator, _as_written if strict and value.type.is_float else _of_value
    )
    return None if found is None else _update(found, accumulators, strict=strict)


def _update(found: _Found, accumulators: frozenset[int], *, strict: bool) -> Update:
    op, term, kind = found.op, found.term, found.term.type
    if found.keeps:
        assert isinstance(op, CompareOp)
        operator = resetting(op, kind)
        return Update(operator.name, operator, term, accumulators)
    if strict and kind.is_float and op not in (BinaryOp.FMAX, BinaryOp.FMIN):
        operator = in_order(combiner(op, kind), op)
        return Update(operator.name, operator, term, accumulators)
    if isinstance(op, CompareOp):
        op = CompareOp.GT if op in LARGER else CompareOp.LT
    return Update(op, combiner(op, kind), term, accumulators)


def same_element(statement: ScopStatement, read: ScopAccess) -> bool:
    """Whether a read is of the element that the statement writes."""
    return _same_access(statement, statement.target, read)


def _same_access(statement: ScopStatement, a: ScopAccess, b: ScopAccess) -> bool:
    if a.array != b.array or len(a.computed) != len(b.computed):
        return False
    pairs = zip(a.computed, b.computed, strict=True)
    if not all(p == q and _same_value(statement, x, y) for (p, x), (q, y) in pairs):
        return False
    here = statement.domain
    return bool(a.relation.intersect_domain(here).is_equal(b.relation.intersect_domain(here)))


def _same_value(statement: ScopStatement, a: Expression, b: Expression) -> bool:
    """Whether two expressions are the same but for reads of one element at different positions."""
    first, second = read_positions(a), read_positions(b)
    if len(first) != len(second):
        return False
    pairs = zip(first, second, strict=True)
    if not all(_same_access(statement, statement.reads[p], statement.reads[q]) for p, q in pairs):
        return False
    return moved_reads(b, dict(zip(second, first, strict=True))) == a


def first_reads(statement: ScopStatement) -> dict[int, int]:
    """Return for each read the first one of the same element."""
    result: dict[int, int] = {}
    for k, read in enumerate(statement.reads):
        earlier = (j for j in range(k) if _same_access(statement, statement.reads[j], read))
        result[k] = result.get(next(earlier, k), k)
    return result


@dataclass(frozen=True)
class _Found:
    """``keeps``: ``op`` tells where the accumulator is kept, and the term is taken everywhere else."""

    op: Operator
    term: Expression
    keeps: bool = False


Matcher = Callable[[Expression, frozenset[int]], _Found | None]


def _match(
    value: Expression, condition: Expression | None, accumulator: frozenset[int], of_value: Matcher
) -> _Found | None:
    if condition is None:
        return of_value(value, accumulator)
    if _reads(condition, accumulator):
        return None if _reads(value, accumulator) else _guarded(value, condition, accumulator)
    return _only_where(condition, of_value(value, accumulator))


def _only_where(condition: Expression, found: _Found | None) -> _Found | None:
    """Return the update whose term changes nothing where a condition on other data does not hold."""
    if found is None or found.keeps:
        return None
    return replace(found, term=Select(condition, found.term, _nothing(found)))


def _nothing(found: _Found) -> Expression:
    """Return the term that changes no total."""
    return Constant(neutral(found.op, found.term.type), found.term.type)


def _guarded(value: Expression, condition: Expression, accumulator: frozenset[int]) -> _Found | None:
    """``if (e > m) m = e``, ``if (!(m >= e)) m = e``, and ``if (c && e > m) m = e``."""
    match condition:
        case Binary(op=BinaryOp.AND):
            where, compare = split_condition(condition, value, accumulator)
            return None if where is None else _only_where(where, _guarded(value, compare, accumulator))
        case Compare():
            return _extremum(condition, value, accumulator, kept=False)
        case Unary(op=UnaryOp.NOT, operand=Compare() as compare):
            return _extremum(compare, value, accumulator, kept=True)
        case _:
            return None


def split_condition(
    condition: Binary, value: Expression, accumulator: frozenset[int]
) -> tuple[Expression | None, Expression]:
    """Return the side of ``a && b`` that can be asked without the accumulator, None without one; the other.

    ``b`` may be asked only where ``a`` holds, unless it reads nothing but what ``value`` reads.
    """
    first, second = condition.left, condition.right
    if not _reads(first, accumulator):
        return first, second
    known = set(read_positions(value)) - accumulator
    may_be_first = not may_trap(second) and known.issuperset(read_positions(second))
    return second if may_be_first else None, first


def combined(value: Expression, accumulator: frozenset[int]) -> tuple[Operator, Expression] | None:
    """Return the operator and the term where a value is ``accumulator op term``, in any order.

    ``accumulator``: the positions that read the accumulator; the term does not.
    """
    found = _of_value(value, accumulator)
    return None if found is None or found.keeps else (found.op, found.term)


def _of_value(value: Expression, accumulator: frozenset[int]) -> _Found | None:
    match value:
        case Convert(type=type_, operand=inner):
            return _narrowed(type_, _of_value(_of_bits(inner, type_, accumulator), accumulator), inner)
        case Select(condition=condition, then=then, otherwise=otherwise):
            return _selected(condition, then, otherwise, accumulator, _of_value)
        case Binary(op=BinaryOp.SUBTRACT | BinaryOp.ADD):
            return _sum(value, accumulator)
        case Binary(op=op) if op in ASSOCIATIVE:
            return _product(value, op, accumulator)
        case _:
            return None


def _as_written(value: Expression, accumulator: frozenset[int]) -> _Found | None:
    """Return an update of floats whose term is, as it stands, the other operand of one operation."""
    match value:
        case Binary(op=BinaryOp.ADD | BinaryOp.MULTIPLY as op, left=a, right=b):
            own, term = (a, b) if _is_accumulator(a, accumulator) else (b, a)
        case Binary(op=BinaryOp.SUBTRACT, left=own, right=b):
            op, term = BinaryOp.ADD, Unary(UnaryOp.NEGATE, b)
        case Convert():
            return None
        case Select(condition=condition, then=then, otherwise=otherwise):
            return _selected(condition, then, otherwise, accumulator, _as_written)
        case _:
            return _of_value(value, accumulator)
    return _Found(op, term) if _is_accumulator(own, accumulator) and not _reads(term, accumulator) else None


def _narrowed(type_: ElementType, found: _Found | None, inner: Expression) -> _Found | None:
    """``c = (char)((int)c + e)``: the operation in a wider type; integers wrap, floats are reassociated."""
    if found is None:
        return None
    term = found.term
    if type_.is_float:
        return replace(found, term=Convert(type_, term)) if inner.type.is_float else None
    if inner.type.is_float or inner.type.size < type_.size:
        return None
    if found.op in (BinaryOp.MAXIMUM, BinaryOp.MINIMUM):
        exact = isinstance(term, Convert) and term.operand.type is type_
        return replace(found, term=term.operand) if exact and isinstance(term, Convert) else None
    return replace(found, term=Convert(type_, term))


def _of_bits(value: Expression, type_: ElementType, accumulator: frozenset[int]) -> Expression:
    """Return sums and products of integers without conversions of the accumulator that keep a type's bits.

    ``(int)((unsigned)c + e)``: the last bits of sums, products and bitwise results are the operands'.
    """
    match value:
        case Binary(op=op, left=a, right=b) if op in _OF_BITS and not (type_.is_float or value.type.is_float):
            return Binary(op, _of_bits(a, type_, accumulator), _of_bits(b, type_, accumulator))
        case Convert(type=kind, operand=inner) if _has_bits(kind, type_) and _has_bits(inner.type, type_):
            bare = _of_bits(inner, type_, accumulator)
            return bare if isinstance(bare, Read) and bare.position in accumulator else value
        case _:
            return value


_OF_BITS = frozenset(
    {
        BinaryOp.ADD,
        BinaryOp.SUBTRACT,
        BinaryOp.MULTIPLY,
        BinaryOp.BIT_AND,
        BinaryOp.BIT_OR,
        BinaryOp.BIT_XOR,
    }
)
"""Operators whose last bits are those of the last bits of their operands."""


def _has_bits(kind: ElementType, other: ElementType) -> bool:
    """Whether integers of a type have all bits of another one."""
    return not kind.is_float and kind is not ElementType.BOOL and kind.size >= other.size


def _selected(
    condition: Expression,
    then: Expression,
    otherwise: Expression,
    accumulator: frozenset[int],
    of_value: Matcher,
) -> _Found | None:
    """``e > m ? e : m`` and ``m > e ? m : e``; where ``c`` does not read ``m``, ``c && e > m ? e : m``, too.

    And ``c ? m + e : m - f``.
    """
    if isinstance(condition, Unary) and condition.op is UnaryOp.NOT:
        return _selected(condition.operand, otherwise, then, accumulator, of_value)
    if not _reads(condition, accumulator):
        return _either(condition, then, otherwise, accumulator, of_value)
    if isinstance(condition, Binary) and condition.op is BinaryOp.AND:
        where, compare = split_condition(condition, then, accumulator)
        if where is None or not _is_accumulator(otherwise, accumulator):
            return None
        return _only_where(where, _selected(compare, then, otherwise, accumulator, of_value))
    if not isinstance(condition, Compare):
        return None
    if _is_accumulator(otherwise, accumulator) and not _reads(then, accumulator):
        return _extremum(condition, then, accumulator, kept=False)
    if _is_accumulator(then, accumulator) and not _reads(otherwise, accumulator):
        return _extremum(condition, otherwise, accumulator, kept=True)
    return None


def _either(
    condition: Expression,
    then: Expression,
    otherwise: Expression,
    accumulator: frozenset[int],
    of_value: Matcher,
) -> _Found | None:
    """Return one update for two with the same operator, or for one and none, of which a condition chooses."""
    sides = [of_value(side, accumulator) for side in (then, otherwise)]
    found = next((side for side in sides if side is not None), None)
    if found is None:
        return None
    terms: list[Expression] = []
    for side, value in zip(sides, (then, otherwise), strict=True):
        if side is None and not _is_accumulator(value, accumulator):
            return None
        if side is not None and (side.op is not found.op or side.keeps):
            return None
        terms.append(_nothing(found) if side is None else side.term)
    if terms[0].type is not terms[1].type:
        return None
    return replace(found, term=Select(condition, *terms))


def _extremum(
    compare: Compare, term: Expression, accumulator: frozenset[int], *, kept: bool
) -> _Found | None:
    """Return the update by a comparison of ``term`` with the accumulator.

    ``kept``: where it holds the accumulator is kept, else the term is taken. For integers that is the
    opposite comparison; for floats it is none, as a NaN compares with nothing.
    """
    left, right = peeled(compare.left), peeled(compare.right)
    if left == peeled(term) and _is_accumulator(right, accumulator):
        op = compare.op
    elif right == peeled(term) and _is_accumulator(left, accumulator):
        op = compare.op.turned
    else:
        return None
    if op.is_equality:
        return None
    if term.type.is_float:
        return _Found(op, term, keeps=kept)
    larger = (op in LARGER) is not kept
    return _Found(BinaryOp.MAXIMUM if larger else BinaryOp.MINIMUM, term)


def _sum(value: Expression, accumulator: frozenset[int]) -> _Found | None:
    parts = _signed_terms(value, 1)
    own = [(sign, part) for sign, part in parts if _is_accumulator(part, accumulator)]
    others = [(sign, part) for sign, part in parts if not _is_accumulator(part, accumulator)]
    if own != [(1, own[0][1])] if own else True:
        return None
    if not others or any(_reads(part, accumulator) for _, part in others):
        return None
    return _Found(BinaryOp.ADD, _sum_of(others))


def _signed_terms(value: Expression, sign: int) -> list[tuple[int, Expression]]:
    match value:
        case Binary(op=BinaryOp.ADD, left=a, right=b):
            return _signed_terms(a, sign) + _signed_terms(b, sign)
        case Binary(op=BinaryOp.SUBTRACT, left=a, right=b):
            return _signed_terms(a, sign) + _signed_terms(b, -sign)
        case _:
            return [(sign, value)]


def _sum_of(parts: Sequence[tuple[int, Expression]]) -> Expression:
    ordered = sorted(parts, key=lambda part: -part[0])
    sign, result = ordered[0]
    if sign < 0:
        result = Unary(UnaryOp.NEGATE, result)
    for sign, part in ordered[1:]:
        result = Binary(BinaryOp.ADD if sign > 0 else BinaryOp.SUBTRACT, result, part)
    return result


def _product(value: Binary, op: BinaryFunction, accumulator: frozenset[int]) -> _Found | None:
    parts = _operands(value, op)
    others = [part for part in parts if not _is_accumulator(part, accumulator)]
    if len(others) != len(parts) - 1 or any(_reads(part, accumulator) for part in others):
        return None
    result = others[0]
    for part in others[1:]:
        result = Binary(op, result, part)
    return _Found(op, result)


def _operands(value: Expression, op: BinaryFunction) -> list[Expression]:
    if isinstance(value, Binary) and value.op is op:
        return _operands(value.left, op) + _operands(value.right, op)
    return [value]


def _reads(expression: Expression, accumulator: frozenset[int]) -> bool:
    return not accumulator.isdisjoint(read_positions(expression))


def _is_accumulator(expression: Expression, accumulator: frozenset[int]) -> bool:
    """Whether an expression is the accumulator itself, perhaps in a wider type."""
    inner = peeled(expression)
    return isinstance(inner, Read) and inner.position in accumulator


def peeled(expression: Expression) -> Expression:
    """Drop conversions that lose nothing."""
    while isinstance(expression, Convert) and _keeps(expression.operand.type, expression.type):
        expression = expression.operand
    return expression


def _keeps(from_: ElementType, to: ElementType) -> bool:
    """Whether a type has all values of another one."""
    if from_.is_float or to.is_float:
        return to.is_float and to.size >= from_.size + (not from_.is_float)
    signed, wants_sign = (kind.value.startswith("int") for kind in (from_, to))
    return to.size >= from_.size + (wants_sign and not signed) and (wants_sign or not signed)
