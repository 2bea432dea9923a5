"""Groups of statements that are one md_hom together: scans, and selections with several results.

A scan: ``s += x[i]; y[i] = s``, and ``y[i] = y[i - 1] + x[i]``. A selection: ``if (x[i] > best) { best =
x[i]; place = i; }``, whose results are combined by one operator on tuples. Where more must hold, as in ``if
(free[i] && x[i] > best)``, the value of a point where it does not is the lowest there is. The forms are those
of the source; that nothing else comes in between is for the dependences to say.

Source: md_poly, Sec. 3.1 (point-wise operators with any function, prefix sums). Unlike the paper: recognised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl

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
from polyloom.ir.naming import Names
from polyloom.ir.rebuild import read_positions, with_reads
from polyloom.scop.dependence.combiners import neutral
from polyloom.scop.dependence.reductions import (
    Operator,
    Update,
    combined,
    first_reads,
    peeled,
    split_condition,
)
from polyloom.scop.joined_reads import appended_reads
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopStatement
from polyloom.scop.rewrite import moved_reads
from polyloom.scop.schedule.hyperplanes import Edge

_DIM = isl.dim_type
STRICT = (CompareOp.LT, CompareOp.GT)
"""Comparisons under which the first of equal values stays; under others the last one does."""


@dataclass(frozen=True, eq=False)
class Selection:
    """``decision`` sets a flag where a value is better; the ``moves`` then replace the results.

    ``best``: which of the moves keeps the compared value; ``op``: how a new value compares with it.
    """

    decision: ScopStatement
    moves: tuple[ScopStatement, ...]
    best: int
    op: CompareOp

    @property
    def statements(self) -> tuple[ScopStatement, ...]:
        """All statements, in the order of the source."""
        return (self.decision, *self.moves)


def same_instances(a: ScopStatement, b: ScopStatement) -> bool:
    """Whether two statements run for the same iterations of the same loops."""
    if a.loops != b.loops or a.domain.dim(_DIM.set) != b.domain.dim(_DIM.set):
        return False
    return bool(a.domain.is_equal(b.domain.set_tuple_name(a.name)))


def same_element(a: ScopStatement, x: ScopAccess, b: ScopStatement, y: ScopAccess) -> bool:
    """Whether accesses of two statements touch the same element in the same iteration."""
    if x.array != y.array or x.computed or y.computed:
        return False
    moved = y.relation.intersect_domain(b.domain).set_tuple_name(_DIM.in_, a.name)
    return bool(x.relation.intersect_domain(a.domain).is_equal(moved))


def selections(scop: Scop) -> tuple[Selection, ...]:
    """Return the selections of the source."""
    inner = {a.name for a in scop.arrays if a.origin is Origin.INNER}
    found = (_selection(scop, s) for s in scop.statements if s.target.array in inner)
    return tuple(selection for selection in found if selection is not None)


def _selection(scop: Scop, decision: ScopStatement) -> Selection | None:
    flag = decision.target.array
    users = [s for s in scop.statements if s is not decision and s.uses(flag)]
    condition = _flag_of(decision)
    if condition is None or not users or any(s.target.array == flag for s in users):
        return None
    moves = tuple(s for s in users if same_instances(decision, s) and _asks(s, flag))
    if len(moves) != len(users) or len({s.target.array for s in moves}) != len(moves):
        return None
    results = {move.target.array for move in moves}
    return None if any(_reads_any(m, results) for m in moves) else _with_best(decision, condition, moves)


def _flag_of(decision: ScopStatement) -> Expression | None:
    """Return the condition that a flag stands for: ``flag = a > b ? 1 : 0``."""
    if decision.condition is not None:
        return None
    match decision.value:
        case Select(condition=condition, then=Constant(value=1), otherwise=Constant(value=0)):
            return condition
        case _:
            return None


def _asks(statement: ScopStatement, flag: str) -> bool:
    """Whether a statement runs where the flag is set, and reads it for nothing else."""
    match statement.condition:
        case Compare(op=CompareOp.NE, left=Read(position=p), right=Constant(value=0)):
            other = read_positions(statement.value)
            return statement.reads[p].array == flag and p not in other
        case _:
            return False


def _with_best(
    decision: ScopStatement, condition: Expression, moves: tuple[ScopStatement, ...]
) -> Selection | None:
    """Return the selection if a result is compared with its own new value; more may have to hold."""
    where, compare = _parts(decision, condition, {move.target.array for move in moves})
    for k, move in enumerate(moves):
        op = None if compare is None else _comparison(decision, compare, move)
        if op is None or (where is not None and op not in STRICT):
            continue
        if where is not None:
            best = neutral(op, move.value.type)
            moves = tuple(_only_where(where, decision, m, best if m is move else 0) for m in moves)
        return Selection(decision, moves, k, op)
    return None


def _parts(
    decision: ScopStatement, condition: Expression, results: set[str]
) -> tuple[Expression | None, Compare | None]:
    """Return what else must hold, None for nothing, and the comparison: None where there is none."""
    if isinstance(condition, Binary) and condition.op is BinaryOp.AND:
        own = frozenset(k for k, read in enumerate(decision.reads) if read.array in results)
        where, compare = split_condition(condition, condition.left, own)
        if where is None:
            return None, None
    else:
        where, compare = None, condition
    return where, compare if isinstance(compare, Compare) else None


def _only_where(
    where: Expression, decision: ScopStatement, move: ScopStatement, otherwise: float
) -> ScopStatement:
    """Return a move that takes its value where a condition of the decision holds."""
    both, shift = appended_reads(move, decision)
    asked = with_reads(where, lambda position: position + shift)
    kind = move.value.type
    return replace(both, value=Select(asked, move.value, Constant(otherwise, kind)))


def _reads_any(move: ScopStatement, arrays: set[str]) -> bool:
    return any(move.reads[p].array in arrays for p in read_positions(move.value))


def _comparison(decision: ScopStatement, compare: Compare, move: ScopStatement) -> CompareOp | None:
    """Return the comparison under which the move's value takes the place of its target."""
    left, right = compare.left, compare.right
    if _is_target(decision, right, move) and _is_value(decision, left, move):
        op = compare.op
    elif _is_target(decision, left, move) and _is_value(decision, right, move):
        op = compare.op.turned
    else:
        return None
    return op if op in (*STRICT, CompareOp.LE, CompareOp.GE) else None


def _is_target(decision: ScopStatement, value: Expression, move: ScopStatement) -> bool:
    value = peeled(value)
    return isinstance(value, Read) and same_element(
        decision, decision.reads[value.position], move, move.target
    )


def _is_value(decision: ScopStatement, value: Expression, move: ScopStatement) -> bool:
    """Whether the decision's expression is the value that the move stores."""
    value = peeled(value)
    theirs, ours = read_positions(value), read_positions(move.value)
    if len(theirs) != len(ours):
        return False
    pairs = list(zip(theirs, ours, strict=True))
    same = all(same_element(decision, decision.reads[a], move, move.reads[b]) for a, b in pairs)
    return same and moved_reads(move.value, {b: a for a, b in pairs}) == value


def together(selection: Selection) -> Iterator[tuple[str, str, isl.Map]]:
    """Yield relations that keep the statements of a selection in one component."""
    first, *others = selection.statements
    for other in others:
        relation = isl.Map.identity(first.domain.get_space().map_from_set()).intersect_domain(first.domain)
        there = relation.set_tuple_name(_DIM.out, other.name)
        yield first.name, other.name, there
        yield other.name, first.name, there.reverse()


@dataclass(frozen=True, eq=False)
class RunningUpdate:
    """A scan: ``update`` combines terms into an element; ``readers`` store what it holds after each."""

    update: ScopStatement
    readers: tuple[ScopStatement, ...]


def running_update(
    statements: Sequence[ScopStatement], edges: Sequence[Edge], updates: Mapping[str, Update]
) -> RunningUpdate | None:
    """Return the scan that a component is; None where it is something else."""
    found = [s for s in statements if s.name in updates]
    if len(found) != 1 or len(statements) < 2 or statements[0] is not found[0]:
        return None
    update, readers = found[0], tuple(statements[1:])
    array = update.target.array
    if any(e.array != array for e in edges) or update.target.computed:
        return None
    if not all(_stores(update, reader, array) for reader in readers):
        return None
    return RunningUpdate(update, readers)


def _stores(update: ScopStatement, reader: ScopStatement, array: str) -> bool:
    """Whether a statement is a map of what the update's element holds."""
    if reader.condition is not None or reader.target.computed or reader.target.array == array:
        return False
    if not same_instances(update, reader):
        return False
    reads = [read for read in reader.reads if read.array == array]
    return bool(reads) and all(same_element(update, update.target, reader, read) for read in reads)


@dataclass(frozen=True, eq=False, kw_only=True)
class Recurrence:
    """``y[i] = y[i - 1] op term``: ``previous`` is the position of the read one step back.

    The term may read ``y[i]``, what the element holds before: prefix sums in place.
    """

    statement: ScopStatement
    op: Operator
    term: Expression
    previous: int
    dimension: int


def recurrence(statement: ScopStatement, edges: Sequence[Edge]) -> Recurrence | None:
    """Return the scan that a statement is over itself; None where it is none."""
    target = statement.target
    if statement.condition is not None or target.computed or any(e.array != target.array for e in edges):
        return None
    first = first_reads(statement)
    previous = {
        first[k]
        for k, read in enumerate(statement.reads)
        if read.array == target.array and not same_element(statement, target, statement, read)
    }
    if len(previous) != 1:
        return None
    (place,) = previous
    found = combined(moved_reads(statement.value, first), frozenset({place}))
    dimension = _step_back(statement, statement.reads[place])
    if found is None or dimension is None:
        return None
    op, term = found
    return Recurrence(statement=statement, op=op, term=term, previous=place, dimension=dimension)


def _step_back(statement: ScopStatement, read: ScopAccess) -> int | None:
    """Return the dimension k with ``read(x) = target(x - e_k)``."""
    size = statement.domain.dim(_DIM.set)
    target = statement.target.relation.intersect_domain(statement.domain)
    for k in range(size):
        names = [f"i{j}" for j in range(size)]
        back = [f"i{j} - 1" if j == k else f"i{j}" for j in range(size)]
        name = statement.name
        step = isl.Map(f"{{ {name}[{', '.join(names)}] -> {name}[{', '.join(back)}] }}")
        before = statement.target.relation.gist_domain(statement.domain).apply_domain(step.reverse())
        here = read.relation.intersect_domain(statement.domain)
        if here.is_subset(before) and target.is_injective():
            return k
    return None


@dataclass(frozen=True, eq=False)
class OrderedUpdate:
    """An update by a function of the source, whose terms combine in their order."""

    statement: ScopStatement
    update: Update


def asks_others(statement: ScopStatement) -> bool:
    """Whether other arrays than the one that it stores to decide whether a statement stores at all."""
    asked = {statement.reads[position].array for position in read_positions(statement.condition)}
    return statement.condition is not None and statement.target.array not in asked


@dataclass(frozen=True, eq=False, kw_only=True)
class Patterns:
    """What is known of the statements of a part, for the recognition of groups.

    ``names``: gives pieces of statements theirs. ``strict``: sums and products of floats are no scans, as
    their parts would be added in another order. ``wavefronts``: whether host loops may be some.
    """

    names: Names
    updates: Mapping[str, Update]
    selections: tuple[Selection, ...]
    ordered: Mapping[str, Update]
    strict: bool = False
    wavefronts: bool = True

    def group(self, statements: Sequence[ScopStatement], edges: Sequence[Edge]) -> Form | None:
        """Return what a strongly connected component is; None where it is nothing of these."""
        real = [e for e in edges if e.array]
        if len(statements) == 1:
            return self._alone(statements[0], real)
        names = {s.name for s in statements}
        for selection in self.selections:
            arrays = {s.target.array for s in selection.statements}
            if {s.name for s in selection.statements} == names and all(e.array in arrays for e in real):
                return selection
        return running_update(statements, real, self.updates)

    def _alone(self, statement: ScopStatement, edges: Sequence[Edge]) -> Form | None:
        update = self.ordered.get(statement.name)
        if update is None:
            found = recurrence(statement, edges)
            return None if found is None or (self.strict and _rounds(found)) else found
        array = statement.target.array
        others = [r for k, r in enumerate(statement.reads) if k not in update.accumulators]
        clean = all(e.array == array for e in edges) and all(r.array != array for r in others)
        return OrderedUpdate(statement, update) if clean else None


def _rounds(found: Recurrence) -> bool:
    """Whether a scan adds or multiplies floats."""
    return found.term.type.is_float and found.op in (BinaryOp.ADD, BinaryOp.MULTIPLY)


Form = Selection | RunningUpdate | Recurrence | OrderedUpdate
