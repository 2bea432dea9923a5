"""Two values in order: a swap under a comparison is the smaller and the larger of both.

    if (a > b) { t = a; a = b; b = t; }     ->      t = a; a = min(a, b); b = max(t, b)

Networks that sort a few values, as medians do, consist of these. As they stand each has a truth value of its
own, by which three statements are chosen; what becomes of them here computers do in one instruction.
Floats stay choices, ``a > b ? b : a``: a NaN is no reason to swap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
)
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import fits, is_integer
from polyloom.scop.dependence.nesting import order_of, schedules, shares_all_loops
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopStatement
from polyloom.scop.preparation.statements import without


def with_values_in_order(scop: Scop) -> Scop:
    """Return the part with swaps of its own variables as minima and maxima."""
    entries = schedules(scop)
    ordered = sorted(scop.statements, key=lambda s: order_of(entries[s.name]))
    changed: dict[str, ScopStatement] = {}
    asked: list[str] = []
    for four in zip(ordered, ordered[1:], ordered[2:], ordered[3:], strict=False):
        first = entries[four[0].name]
        if all(shares_all_loops(first, entries[s.name]) for s in four) and (made := _in_order(scop, four)):
            changed |= {s.name: s for s in made}
            asked.append(four[0].name)
    if not changed:
        return scop
    return without(replace(scop, statements=tuple(changed.get(s.name, s) for s in scop.statements)), asked)


def _in_order(scop: Scop, four: Sequence[ScopStatement]) -> tuple[ScopStatement, ...] | None:
    """Return a swap without its question: what saves a value, the first one, the other; None for no swap.

    ``four``: the question, and what is done where it holds, ``t = x; x = y; y = t``.
    """
    asking, saving, first, second = four
    c, t, x, y = (s.target.array for s in four)
    own = {a.name: a.type for a in scop.arrays if a.origin is Origin.INNER and not a.shape}
    if len({c, t, x, y}) < 4 or not {c, t, x, y} <= own.keys() or len({own[t], own[x], own[y]}) > 1:
        return None
    moves = ((saving, x), (first, y), (second, t))
    if any(_copied(s) != source or _question(s) != c or _differs(s, asking) for s, source in moves):
        return None
    if _readers(scop, c) != {s.name for s, _ in moves} or _readers(scop, t) != {second.name}:
        return None
    op = _comparison(asking, x, y, own[x])
    if op is None:
        return None
    return (
        replace(saving, value=Read(0, own[x]), reads=(_read(saving, x),), condition=None),
        _chosen(first, op, (first.target, _read(first, y)), own[x], is_first=True),
        _chosen(second, op, (_read(second, t), second.target), own[x], is_first=False),
    )


def _copied(statement: ScopStatement) -> str | None:
    """Return the variable whose value a statement copies."""
    value = statement.value
    return statement.reads[value.position].array if isinstance(value, Read) else None


def _question(statement: ScopStatement) -> str | None:
    """Return the truth value under which a statement is carried out."""
    match statement.condition:
        case Compare(op=CompareOp.NE, left=Read(position=k), right=Constant(value=0)):
            return statement.reads[k].array
        case _:
            return None


def _differs(statement: ScopStatement, other: ScopStatement) -> bool:
    return not statement.domain.set_tuple_name("S").is_equal(other.domain.set_tuple_name("S"))


def _readers(scop: Scop, array: str) -> set[str]:
    return {s.name for s in scop.statements if any(read.array == array for read in s.reads)}


def _comparison(asking: ScopStatement, x: str, y: str, kind: ElementType) -> CompareOp | None:
    """Return how x is compared with y; None where other values are, or these in a type that changes them."""
    match asking.value:
        case Select(
            condition=Compare(op=op, left=left, right=right),
            then=Constant(value=1),
            otherwise=Constant(value=0),
        ) if asking.condition is None:
            sides = tuple(_variable(side, asking, kind) for side in (left, right))
        case _:
            return None
    if op not in _ORDERS or set(sides) != {x, y}:
        return None
    return op if sides == (x, y) else op.turned


_ORDERS = (CompareOp.LT, CompareOp.LE, CompareOp.GT, CompareOp.GE)


def _variable(side: Expression, asking: ScopStatement, kind: ElementType) -> str | None:
    """Return the variable of which a side is the value, maybe in a wider type."""
    if isinstance(side, Convert) and is_integer(kind) and is_integer(side.type):
        side = side.operand if fits((int(kind.lowest), int(kind.highest)), side.type) else side
    return asking.reads[side.position].array if isinstance(side, Read) else None


def _read(statement: ScopStatement, array: str) -> ScopAccess:
    return next(read for read in statement.reads if read.array == array)


def _chosen(
    statement: ScopStatement,
    op: CompareOp,
    accesses: tuple[ScopAccess, ScopAccess],
    kind: ElementType,
    *,
    is_first: bool,
) -> ScopStatement:
    """Return the statement with what is left in x (``is_first``), or in y, of both values before the swap."""
    x, y = Read(0, kind), Read(1, kind)
    if is_integer(kind):
        smaller = (op in (CompareOp.GT, CompareOp.GE)) is is_first
        value: Expression = Binary(BinaryOp.MINIMUM if smaller else BinaryOp.MAXIMUM, x, y)
    else:
        value = Select(Compare(op, x, y), *((y, x) if is_first else (x, y)))
    return replace(statement, value=value, reads=accesses, condition=None)
