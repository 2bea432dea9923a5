"""Accumulators that are only ever read as one total are one accumulator.

    s = 0; t = 0;                                          s = 0;
    for (i) { s += x[2 * i]; t += x[2 * i + 1]; }    ->    for (i) { s += x[2 * i]; s += x[2 * i + 1]; }
    y = (s + t) / n;                                       y = s / n;

Several accumulators keep a processor's units busy where each operation waits for the one before. Reductions
here are split up anyway, and terms that stand together can be loaded as vectors.

Why the values stay: let ``+`` be the operator, associative and commutative. After the change s holds what
``s + t`` was. Where t is set behind s in the same iterations, with no update of t and no reader between, that
holds from there; each update of either keeps it; and all others read nothing but ``s + t``. Or t goes into s
(``s += t``) in each iteration that has set it, and is no longer used: then it holds from where t is set until
there, where s has the same value before and after the change.

Sums of floats have another order: under ``strict`` only what has no order is joined. Source: the inverse of
accumulator expansion (Allen and Kennedy 2001). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import isnan

import islpy as isl

from polyloom.ir.expressions import CompareOp, Constant, Convert, Expression, Read
from polyloom.ir.rebuild import Leaf, read_positions, rebuilt, with_leaves, with_reads
from polyloom.scop.dependence.combiners import LARGER, combiner, neutral
from polyloom.scop.dependence.nesting import Entries, order_of, schedules, shares_all_loops
from polyloom.scop.dependence.reductions import Operator, combined, peeled, update_of
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopArray, ScopStatement
from polyloom.scop.preparation.statements import lifted, without

_DIM = isl.dim_type
MOST = 16
"""Of so many accumulators of a part pairs are looked at."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Accumulator:
    """A local that one statement sets, and others update by one operator.

    ``others``: the statements that read it for something else, or for another one's update.
    """

    array: ScopArray
    op: Operator
    start: ScopStatement
    updates: tuple[ScopStatement, ...]
    others: tuple[ScopStatement, ...]


def with_accumulators_joined(scop: Scop, *, strict: bool) -> Scop:
    """Return the part with one accumulator for several that make up one total."""
    inner = [a for a in scop.arrays if a.origin is Origin.INNER and not a.shape]
    if len(inner) < 2 or scop.stated:
        return scop
    entries = schedules(scop)
    found = [f for array in inner if (f := _accumulator(array, scop, strict)) is not None]
    if len(found) > MOST:
        return scop
    for kept, gone in permutations(found, 2):
        if kept.op == gone.op and kept.array.type is gone.array.type:
            changed = _read_together(kept, gone, entries) or _added(kept, gone, entries, strict=strict)
            if changed is not None:
                return with_accumulators_joined(_joined(scop, kept, gone, changed), strict=strict)
    return scop


def _accumulator(array: ScopArray, scop: Scop, strict: bool) -> _Accumulator | None:
    """Return what a scalar is set, updated and read by; None where it is no accumulator."""
    users = [s for s in scop.statements if s.uses(array.name)]
    ops = {s.name: _op(s, strict) for s in users if s.target.array == array.name}
    starts = [s for s in users if s.name in ops and not _reads(s, array.name)]
    updates = tuple(s for s in users if s.name in ops and s not in starts)
    kinds = {ops[s.name] for s in updates}
    if len(starts) != 1 or starts[0].condition is not None or len(kinds) != 1:
        return None
    op = next(iter(kinds))
    others = tuple(s for s in users if s.name not in ops)
    if op is None:
        return None
    return _Accumulator(array=array, op=op, start=starts[0], updates=updates, others=others)


def _op(statement: ScopStatement, strict: bool) -> Operator | None:
    """Return the operator of an update whose terms may change places."""
    update = update_of(statement, strict=strict)
    return None if update is None or isinstance(update.op, str) else update.op


def _reads(statement: ScopStatement, array: str) -> bool:
    return any(read.array == array for read in statement.reads)


def _is_free_of(statements: Sequence[ScopStatement], array: str) -> bool:
    return not any(s.uses(array) for s in statements)


def _read_together(
    kept: _Accumulator, gone: _Accumulator, entries: dict[str, Entries]
) -> tuple[ScopStatement, ...] | None:
    """Return the statements that read both, with the total instead; None where one is read alone."""
    readers = tuple({s.name: s for s in (*kept.others, *gone.others)}.values())
    own = (gone.start, *gone.updates)
    if not _is_free_of(own, kept.array.name) or not _is_free_of((kept.start, *kept.updates), gone.array.name):
        return None
    if not (_may_be_compared(kept.start, kept.op) and _may_be_compared(gone.start, kept.op)):
        return None
    first, second = entries[kept.start.name], entries[gone.start.name]
    if not shares_all_loops(first, second) or not order_of(first) < order_of(second):
        return None
    used = (*gone.updates, *readers)
    if _any_between(kept.start, gone.start, used, entries) or not _run_together(kept.start, gone.start):
        return None
    made = [_with_total(reader, kept, gone) for reader in readers]
    changed = tuple(s for s in made if s is not None)
    return changed if len(changed) == len(readers) else None


def _added(
    kept: _Accumulator, gone: _Accumulator, entries: dict[str, Entries], *, strict: bool
) -> tuple[ScopStatement, ...] | None:
    """Return the update that adds one to the other, without it; None where that is not its only use."""
    adding = [s for s in kept.updates if s.uses(gone.array.name)]
    if len(adding) != 1 or gone.others != tuple(adding) or adding[0].condition is not None:
        return None
    total, start = adding[0], gone.start
    own = (start, *gone.updates)
    if not _is_free_of(own, kept.array.name) or not _may_be_compared(start, kept.op):
        return None
    begin, end = entries[start.name], entries[total.name]
    if not shares_all_loops(begin, end) or not order_of(begin) < order_of(end):
        return None
    outside = [s for s in gone.updates if not _any_between(start, total, [s], entries)]
    if outside or _any_between(start, total, (kept.start, *kept.others), entries):
        return None
    if not _run_together(start, total) or not all(_runs_in(s, start) for s in gone.updates):
        return None
    made = _without_term(total, kept, gone, strict=strict)
    return None if made is None else (made,)


def _any_between(
    first: ScopStatement,
    last: ScopStatement,
    statements: Sequence[ScopStatement],
    entries: dict[str, Entries],
) -> bool:
    """Whether one of the statements runs behind the first and before the last, in one iteration of these."""
    begin, end = order_of(entries[first.name]), order_of(entries[last.name])
    return any(begin < order_of(entries[s.name]) < end for s in statements)


def _run_together(a: ScopStatement, b: ScopStatement) -> bool:
    return bool(a.domain.set_tuple_name(b.name).is_equal(b.domain))


def _runs_in(update: ScopStatement, start: ScopStatement) -> bool:
    """Whether a statement in the loops of another one runs only in iterations that run that one, too."""
    return bool(update.domain.is_subset(lifted(start, update).domain.set_tuple_name(update.name)))


def _may_be_compared(start: ScopStatement, op: Operator) -> bool:
    """Whether what an accumulator starts from is no NaN, where that would hide its terms from comparisons."""
    if not isinstance(op, CompareOp):
        return True
    return isinstance(start.value, Constant) and not isnan(start.value.value)


def _positions(statement: ScopStatement, array: str) -> frozenset[int]:
    return frozenset(k for k, read in enumerate(statement.reads) if read.array == array)


def _with_total(reader: ScopStatement, kept: _Accumulator, gone: _Accumulator) -> ScopStatement | None:
    """Return a statement that reads the total of two; None where it reads one of them in another way."""
    a, b = _positions(reader, kept.array.name), _positions(reader, gone.array.name)
    accesses = (reader.target, *reader.reads)
    places = [value for access in accesses for value in (*access.indices, *dict(access.computed).values())]
    if (a | b) & set(read_positions(*places)):
        return None
    total = Read(len(reader.reads), kept.array.type)
    once = {**dict.fromkeys(a, min(a, default=0)), **dict.fromkeys(b, min(b, default=0))}

    def change(part: Expression) -> Expression | None:
        if part.type is not total.type:
            return None
        rests = (_rest_of_both(part, first, second, kept.op) for first, second in ((a, b), (b, a)))
        rest = next((found for found in rests if found is not None), None)
        return None if rest is None else _all_of(kept.op, total, *rest)

    def changed(part: Expression) -> Expression:
        return rebuilt(with_reads(part, lambda position: once.get(position, position)), change)

    value, condition = changed(reader.value), reader.condition and changed(reader.condition)
    if (a | b) & set(read_positions(value, condition)):
        return None
    return replace(reader, reads=(*reader.reads, _whole(reader, kept)), value=value, condition=condition)


def _rest_of_both(
    value: Expression, first: frozenset[int], second: frozenset[int], op: Operator
) -> tuple[Expression, ...] | None:
    """Return what a value combines with two accumulators, if anything; None where it does not have both."""
    found = _rest(value, first, op)
    return _rest(found[0], second, op) if found else None


def _rest(value: Expression, accumulator: frozenset[int], op: Operator) -> tuple[Expression, ...] | None:
    """Return what a value combines with an accumulator, if anything; None where it is not of that form."""
    inner = peeled(value)
    if isinstance(inner, Read) and inner.position in accumulator:
        return ()
    found = combined(value, accumulator)
    return (found[1],) if found is not None and _plain(found[0]) == op else None


def _plain(op: Operator) -> Operator:
    """Return the operator as updates have it."""
    if not isinstance(op, CompareOp):
        return op
    return CompareOp.GT if op in LARGER else CompareOp.LT


def _all_of(op: Operator, first: Expression, *others: Expression) -> Expression:
    """Return values combined."""
    value = first
    for other in others:
        both = (value, other)
        value = with_leaves(combiner(op, first.type).results[0], _operands(both))
    return value


def _operands(values: Sequence[Expression]) -> Callable[[Leaf], Expression]:
    return lambda leaf: values[leaf.position] if isinstance(leaf, Read) else leaf


def _whole(statement: ScopStatement, accumulator: _Accumulator) -> ScopAccess:
    """Return an access to a scalar in all instances."""
    element = accumulator.start.target.relation.range()
    relation = isl.Map.from_domain_and_range(statement.domain, element)
    return ScopAccess(array=accumulator.array.name, relation=relation, span=statement.span)


def _without_term(
    total: ScopStatement, kept: _Accumulator, gone: _Accumulator, *, strict: bool
) -> ScopStatement | None:
    """Return the update of one without the other among its terms; a copy of itself where that is its term."""
    update = update_of(total, strict=strict)
    assert update is not None
    b = _positions(total, gone.array.name)
    rest = _rest(update.term, b, kept.op) if update.term.type is kept.array.type else None
    if rest is None:
        return None
    value = _all_of(kept.op, Read(len(total.reads), kept.array.type), *rest)
    return replace(total, reads=(*total.reads, _whole(total, kept)), value=value, condition=None)


def _joined(scop: Scop, kept: _Accumulator, gone: _Accumulator, changed: Sequence[ScopStatement]) -> Scop:
    """Return the part with one accumulator for two: the start of the other is an update, too."""
    made = {s.name: s for s in (*changed, _as_update(gone.start, kept))}
    needless = {name for name, s in made.items() if _keeps_value(s)}
    statements = tuple(_of(made.get(s.name, s), kept, gone) for s in scop.statements)
    arrays = tuple(a for a in scop.arrays if a is not gone.array)
    return without(replace(scop, statements=statements, arrays=arrays), needless)


def _as_update(start: ScopStatement, kept: _Accumulator) -> ScopStatement:
    """Return what combines into an accumulator that from which another one starts."""
    kind, value = kept.array.type, start.value
    access, before = _whole(start, kept), Read(len(start.reads), kept.array.type)
    nothing = neutral(kept.op, kind)
    if isinstance(value, Constant) and (value.value == nothing or (nothing == 0 == value.value)):
        return replace(start, target=access, reads=(*start.reads, access), value=before)
    term = value if value.type is kind else Convert(kind, value)
    return replace(start, target=access, reads=(*start.reads, access), value=_all_of(kept.op, before, term))


def _keeps_value(statement: ScopStatement) -> bool:
    """Whether a statement stores in a scalar what that holds."""
    value, target = statement.value, statement.target
    return isinstance(value, Read) and statement.reads[value.position].array == target.array


def _of(statement: ScopStatement, kept: _Accumulator, gone: _Accumulator) -> ScopStatement:
    """Return a statement with one accumulator in place of the other."""

    def moved(access: ScopAccess) -> ScopAccess:
        if access.array != gone.array.name:
            return access
        relation = access.relation.set_tuple_name(_DIM.out, kept.array.name)
        return replace(access, array=kept.array.name, relation=relation)

    return replace(statement, target=moved(statement.target), reads=tuple(map(moved, statement.reads)))
