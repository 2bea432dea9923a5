"""Both branches of an ``if`` that store into one element become one statement with a choice (if-conversion).

Before: ``if (d > 0) s += d * x; else s -= d * y;``, two statements under conditions on data.
After: ``s = d > 0 ? s + d * x : s - d * y``, one statement without, which is one sum.

Source: Allen et al. 1983 (if-conversion). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyloom.ir.expressions import Binary, BinaryOp, Compare, CompareOp, Expression, Select, Unary, UnaryOp
from polyloom.ir.rebuild import read_positions
from polyloom.scop.dependence.nesting import Entries, schedules
from polyloom.scop.dependence.reductions import first_reads, same_element
from polyloom.scop.model import Scop, ScopStatement
from polyloom.scop.preparation.statements import appended_reads, moved_access, without
from polyloom.scop.rewrite import moved_reads


def joined(scop: Scop) -> Scop:
    """Return the part with one statement for each two branches that store into the same element."""
    found = _pair(scop, schedules(scop))
    while found is not None:
        first, second, both = found
        statements = tuple(both if s is first else s for s in scop.statements)
        scop = without(replace(scop, statements=statements), {second.name})
        found = _pair(scop, schedules(scop))
    return scop


def _pair(
    scop: Scop, entries: dict[str, Entries]
) -> tuple[ScopStatement, ScopStatement, ScopStatement] | None:
    conditional = [s for s in scop.statements if s.condition is not None]
    for first in conditional:
        for second in conditional:
            if first.target.array == second.target.array and _is_next(entries, first, second):
                both = _joined(first, second)
                if both is not None:
                    return first, second, both
    return None


def _is_next(entries: dict[str, Entries], first: ScopStatement, second: ScopStatement) -> bool:
    """Whether the second runs right after the first, in the same iteration of the same loops."""
    a, b = entries[first.name], entries[second.name]
    differ = [k for k, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
    if len(differ) != 1:
        return False
    place = differ[0]
    before, after = a[place], b[place]
    if before is None or after is None or before >= after or None in a[place:] or None in b[place:]:
        return False
    between = (e[place] for e in entries.values() if e[:place] == a[:place])
    return not any(e is None or before < e < after for e in between)


def _joined(first: ScopStatement, second: ScopStatement) -> ScopStatement | None:
    """Return both as one statement; None where their conditions, domains or targets do not allow it."""
    if not first.domain.is_equal(second.domain.set_tuple_name(first.name)):
        return None
    both, shift = appended_reads(first, second)
    target = moved_access(second.target, first.name, shift)
    if not same_element(both, target) or first.target.computed or second.target.computed:
        return None
    places = first_reads(both)
    assert first.condition is not None
    assert second.condition is not None
    condition = moved_reads(first.condition, places)
    opposite = moved_reads(second.condition, {k: places[k + shift] for k in range(len(second.reads))})
    if any(both.reads[p].array == first.target.array for p in read_positions(condition, opposite)):
        return None
    *around, choice = _conjuncts(condition)
    *other, complement = _conjuncts(opposite)
    if around != other or not _are_opposite(choice, complement):
        return None
    otherwise = moved_reads(second.value, {k: k + shift for k in range(len(second.reads))})
    if otherwise.type is not first.value.type:
        return None
    return replace(both, condition=_all(around), value=Select(choice, first.value, otherwise))


def _conjuncts(condition: Expression) -> list[Expression]:
    match condition:
        case Binary(op=BinaryOp.AND, left=left, right=right):
            return [*_conjuncts(left), *_conjuncts(right)]
        case _:
            return [condition]


def _all(conditions: Sequence[Expression]) -> Expression | None:
    found: Expression | None = None
    for condition in conditions:
        found = condition if found is None else Binary(BinaryOp.AND, found, condition)
    return found


_OPPOSITE = {
    CompareOp.LT: CompareOp.GE,
    CompareOp.GE: CompareOp.LT,
    CompareOp.GT: CompareOp.LE,
    CompareOp.LE: CompareOp.GT,
    CompareOp.EQ: CompareOp.NE,
    CompareOp.NE: CompareOp.EQ,
}


def _are_opposite(a: Expression, b: Expression) -> bool:
    """Whether exactly one holds. Of floats ``a < b`` and ``a >= b`` are both wrong where one is no number."""
    match a, b:
        case (Unary(op=UnaryOp.NOT, operand=inner), other) | (other, Unary(op=UnaryOp.NOT, operand=inner)):
            return inner == other
        case Compare(op=p, left=x, right=y), Compare(op=q, left=u, right=v):
            exact = p in (CompareOp.EQ, CompareOp.NE) or not x.type.is_float
            return exact and _OPPOSITE[p] is q and (x, y) == (u, v)
        case _:
            return False
