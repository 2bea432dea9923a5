"""Branches of an ``if`` that store into one element become one statement with a choice (if-conversion).

Before: ``if (d > 0) s += d * x; else s -= d * y;``, two statements under conditions on data.
After: ``s = d > 0 ? s + d * x : s - d * y``, one statement without, which is one sum.

Branches may have other statements too, and an ``else if``: ``if (a) v = 1; else if (b) v = 2;`` is
``if (a || b) v = a ? 1 : 2``.

Source: Allen et al. 1983 (if-conversion). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyloom.ir.expressions import Binary, BinaryOp, Compare, Expression, Select, Unary, UnaryOp
from polyloom.ir.rebuild import read_positions
from polyloom.scop.dependence.nesting import Entries, schedules
from polyloom.scop.dependence.reductions import first_reads, same_element
from polyloom.scop.joined_reads import appended_reads, moved_access
from polyloom.scop.model import Scop, ScopStatement
from polyloom.scop.preparation.statements import without
from polyloom.scop.rewrite import moved_reads


@dataclass(frozen=True)
class _Pair:
    """Two branches; ``both``: what stands in the place of the first. ``is_whole``: one of them is taken."""

    first: ScopStatement
    second: ScopStatement
    both: ScopStatement
    is_whole: bool


def joined(scop: Scop) -> Scop:
    """Return the part with one statement for each two branches that store into the same element."""
    found = _pair(scop, schedules(scop))
    while found is not None:
        statements = tuple(found.both if s is found.first else s for s in scop.statements)
        scop = without(replace(scop, statements=statements), {found.second.name})
        found = _pair(scop, schedules(scop))
    return scop


def _pair(scop: Scop, entries: Mapping[str, Entries]) -> _Pair | None:
    """Return two branches; those that leave no condition come first: they are the inner ones."""
    conditional = [s for s in scop.statements if s.condition is not None]
    partial: _Pair | None = None
    for first in conditional:
        for second in conditional:
            if first.target.array != second.target.array:
                continue
            middle = between(scop, entries, first, second)
            found = None if middle is None else _joined(first, second, middle)
            if found is not None and found.is_whole:
                return found
            partial = partial or found
    return partial


def between(
    scop: Scop, entries: Mapping[str, Entries], first: ScopStatement, second: ScopStatement
) -> Sequence[ScopStatement] | None:
    """Return what runs between two statements in the same iteration of the same loops; None for others."""
    a, b = entries[first.name], entries[second.name]
    differ = [k for k, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
    if len(differ) != 1:
        return None
    place = differ[0]
    before, after = a[place], b[place]
    if before is None or after is None or before >= after or None in a[place:] or None in b[place:]:
        return None
    beside = [(s, e[place]) for s in scop.statements if (e := entries[s.name])[:place] == a[:place]]
    if any(position is None for _, position in beside):
        return None
    return [s for s, position in beside if position is not None and before < position < after]


def _joined(first: ScopStatement, second: ScopStatement, between: Sequence[ScopStatement]) -> _Pair | None:
    """Return both as one; None where their conditions, domains or targets do not allow it.

    The second moves before what is between: that runs where the first does, and the second does not.
    """
    if not _is_same_domain(first, second):
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
    asked = {both.reads[p].array for p in read_positions(condition, opposite)}
    if first.target.array in asked or not all(_runs_with(s, first, asked) for s in between):
        return None
    split = _split(conjuncts(condition), conjuncts(opposite))
    if split is None:
        return None
    around, choice, rest = split
    otherwise = moved_reads(second.value, {k: k + shift for k in range(len(second.reads))})
    if otherwise.type is not first.value.type:
        return None
    if rest is not None:
        if first.target.array in {r.array for r in both.reads}:
            return None  # a sum under conditions is found as such
        around = [*around, Binary(BinaryOp.OR, choice, rest)]
    value = Select(choice, first.value, otherwise)
    return _Pair(first, second, replace(both, condition=_all(around), value=value), rest is None)


def _is_same_domain(a: ScopStatement, b: ScopStatement) -> bool:
    return bool(a.domain.is_equal(b.domain.set_tuple_name(a.name)))


def _runs_with(other: ScopStatement, first: ScopStatement, asked: set[str]) -> bool:
    """Return whether a statement runs only where the first does, and leaves what conditions ask alone."""
    if other.condition is None or other.target.array in asked or len(other.iterators) != len(first.iterators):
        return False
    if not _is_same_domain(first, other):
        return False
    both, shift = appended_reads(first, other)
    places = first_reads(both)
    assert first.condition is not None
    wanted = conjuncts(moved_reads(first.condition, places))
    found = conjuncts(moved_reads(other.condition, {k: places[k + shift] for k in range(len(other.reads))}))
    return all(condition in found for condition in wanted)


def _split(
    first: Sequence[Expression], second: Sequence[Expression]
) -> tuple[list[Expression], Expression, Expression | None] | None:
    """Return what both ask, the choice between them, and what the second asks besides."""
    for k in reversed(range(len(first))):
        choice = _all(first[k:])
        if list(first[:k]) != list(second[:k]) or choice is None or len(second) == k:
            continue
        whole = _all(second[k:])
        if whole is not None and _are_opposite(choice, whole):
            return list(first[:k]), choice, None
        if _are_opposite(choice, second[k]):
            return list(first[:k]), choice, _all(second[k + 1 :])
    return None


def conjuncts(condition: Expression) -> list[Expression]:
    """Return the conditions that hold together where one does."""
    match condition:
        case Binary(op=BinaryOp.AND, left=left, right=right):
            return [*conjuncts(left), *conjuncts(right)]
        case _:
            return [condition]


def _all(conditions: Sequence[Expression]) -> Expression | None:
    found: Expression | None = None
    for condition in conditions:
        found = condition if found is None else Binary(BinaryOp.AND, found, condition)
    return found


def _are_opposite(a: Expression, b: Expression) -> bool:
    """Whether exactly one holds. Of floats ``a < b`` and ``a >= b`` are both wrong where one is no number."""
    match a, b:
        case (Unary(op=UnaryOp.NOT, operand=inner), other) | (other, Unary(op=UnaryOp.NOT, operand=inner)):
            return _all(conjuncts(inner)) == other
        case Compare(op=p, left=x, right=y), Compare(op=q, left=u, right=v):
            exact = p.is_equality or not x.type.is_float
            return exact and p.opposite is q and (x, y) == (u, v)
        case _:
            return False
