"""Values that an iteration gives a name and then uses are computed where they are used.

Before: ``d = u[i][j] - u[i][j - 1]; s += d * d;``. After: ``s += (u[i][j] - u[i][j - 1]) * (...)``, and
there is no ``d``: without it an array of its values, for all iterations, would be written and read again.

The value must be cheap where several statements use it, and nothing it reads is written in between. A mere
copy is also used in loops inside the iteration: ``x = a[i][k]; for (j ...) c[i][j] += x * b[k][j];``.

A value that the same iteration overwrites is substituted as well, as if it had a name of its own: after
``best = a; if (b > best) best = b;`` there is ``best = b > a ? b : a``.

Source: forward substitution, scalar renaming and if-conversion (Allen and Kennedy 2001, Sec. 4.5, 5.3, 7.2).
Not in the papers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import inf

import islpy as isl

from polyloom.ir.expressions import (
    Assign,
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Local,
    Procedure,
    Read,
    Select,
    has_procedure,
    instructions,
    locals_of,
    may_trap,
    walk,
)
from polyloom.ir.naming import fresh
from polyloom.ir.rebuild import read_positions, rebuilt, rebuilt_steps
from polyloom.scop.dependence.nesting import (
    Entries,
    depth_of,
    is_in_loops_of,
    order_of,
    schedules,
    shares_all_loops,
)
from polyloom.scop.joined_reads import appended_reads
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopArray, ScopStatement
from polyloom.scop.preparation.statements import lifted, lifted_access, without

_DIM = isl.dim_type

MOST_INSTRUCTIONS = 40
"""How many instructions more are cheaper than a store of their value, and a load for each further statement.

In vectors, and where memory holds the values: 12 bytes take as long as ninety instructions of eight floats.
One statement needs them once however often it names the value: compilers of C see that they are the same.
"""

AND, OR = BinaryOp.AND, BinaryOp.OR

LONGEST_TEXT = 160
"""How many instructions may be written more than once."""


def substituted(scop: Scop) -> Scop:
    """Return the part without named values that can stand where they are used."""
    entries = schedules(scop)
    always = {s.name for s in scop.statements if may_always_be_computed(s, scop)}
    for name in [s.name for s in scop.statements]:
        giving = next(s for s in scop.statements if s.name == name)
        made = _without_value_of(scop, giving, entries)
        if made is scop and (renamed := _renamed(scop, giving, entries, always)) is not None:
            tried = _without_value_of(*renamed, entries, overwritten=True)
            made = scop if tried is renamed[0] else replace(tried, arrays=scop.arrays)
        scop = made
    return scop


def _renamed(
    scop: Scop, giving: ScopStatement, entries: dict[str, Entries], always: Collection[str]
) -> tuple[Scop, ScopStatement] | None:
    """Return the part with a name of its own for what a statement gives, and that statement.

    None where no other statement overwrites all of it, in the same iterations. ``always``: the statements
    whose value may be computed where their condition does not hold.
    """
    array = next(a for a in scop.arrays if a.name == giving.target.array)
    over = _overwriting(giving, scop, entries) if array.origin is Origin.INNER else None
    if over is None or over.name not in always:
        return None
    own = replace(array, name=fresh(array.name, {a.name for a in scop.arrays}))
    first, last = order_of(entries[giving.name]), order_of(entries[over.name])
    changed = {}
    for statement in scop.statements:
        if statement is giving:
            changed[statement.name] = replace(giving, target=called(giving.target, own.name))
        elif first < order_of(entries[statement.name]) <= last:
            whole = _unconditional(over, array) if statement is over else statement
            reads = (called(r, own.name) if r.array == array.name else r for r in whole.reads)
            changed[statement.name] = replace(whole, reads=tuple(reads))
    statements = tuple(changed.get(s.name, s) for s in scop.statements)
    renamed = replace(scop, statements=statements, arrays=(*scop.arrays, own))
    return renamed, changed[giving.name]


def _overwriting(giving: ScopStatement, scop: Scop, entries: dict[str, Entries]) -> ScopStatement | None:
    """Return the next statement that stores into the elements of another one, in each of its iterations."""
    first = order_of(entries[giving.name])
    later = [
        s
        for s in scop.statements
        if s.target.array == giving.target.array and order_of(entries[s.name]) > first
    ]
    over = min(later, key=lambda s: order_of(entries[s.name]), default=None)
    if over is None or not shares_all_loops(entries[giving.name], entries[over.name]):
        return None
    if giving.target.computed or over.target.computed:
        return None
    same = over.target.relation.set_tuple_name(_DIM.in_, giving.name).is_equal(giving.target.relation)
    return over if same and over.domain.set_tuple_name(giving.name).is_equal(giving.domain) else None


def may_always_be_computed(statement: ScopStatement, scop: Scop) -> bool:
    """Whether a value needs no condition: it cannot trap, and all that it is made of exists."""
    if statement.condition is None:
        return True
    inner = {a.name for a in scop.arrays if a.origin is Origin.INNER}
    asked = [statement.reads[k] for k in read_positions(statement.condition)]
    needed = [statement.reads[k] for k in read_positions(statement.value)]
    return not may_trap(statement.value) and all(
        not r.computed and (r.array in inner or any(_is_same(r, other) for other in asked)) for r in needed
    )


def _is_same(read: ScopAccess, other: ScopAccess) -> bool:
    return read.array == other.array and not other.computed and read.relation.is_subset(other.relation)


def _unconditional(statement: ScopStatement, array: ScopArray) -> ScopStatement:
    """Return a statement that stores what there is, where its condition does not hold."""
    if statement.condition is None:
        return statement
    value = as_stored(statement.value, array)
    old = Read(len(statement.reads), array.type)
    reads = (*statement.reads, statement.target)
    return replace(statement, reads=reads, value=Select(statement.condition, value, old), condition=None)


def called(access: ScopAccess, array: str) -> ScopAccess:
    """Return an access to another array, at the same indices."""
    return replace(access, array=array, relation=access.relation.set_tuple_name(_DIM.out, array))


def as_stored(value: Expression, array: ScopArray) -> Expression:
    """Return a value in the type of the array that holds it."""
    return value if value.type is array.type else Convert(array.type, value)


def _without_value_of(
    scop: Scop, giving: ScopStatement, entries: dict[str, Entries], *, overwritten: bool = False
) -> Scop:
    """Return the part with a value in place of its name; the same part where that cannot be.

    ``overwritten``: nobody needs the value where no statement uses it.
    """
    array = next(a for a in scop.arrays if a.name == giving.target.array)
    users = [s for s in scop.statements if s is not giving and s.uses(array.name)]
    if array.origin is not Origin.INNER or not (users or overwritten) or not is_value(giving):
        return scop
    if has_procedure(giving.value) and not _is_asked_once(users, array.name):
        return scop
    if not _is_cheap(giving.value, [_count(s, array.name) for s in users]):
        return scop
    if not all(
        _is_given(giving, user, entries) and _is_unchanged(giving, user, scop, entries) for user in users
    ):
        return scop
    value = as_stored(giving.value, array)
    given = replace(giving, value=value)
    made = {s.name: with_value(s, lifted(given, s), _places(s, array.name)) for s in users}
    statements = tuple(made.get(s.name, s) for s in scop.statements)
    return without(replace(scop, statements=statements), {giving.name})


def _is_cheap(value: Expression, counts: list[int]) -> bool:
    """Whether a value that each user needs that many times may be computed again."""
    each = instructions(value)
    return (len(counts) - 1) * each <= MOST_INSTRUCTIONS and (sum(counts) - 1) * each <= LONGEST_TEXT


def _is_asked_once(users: Collection[ScopStatement], array: str) -> bool:
    """Whether the value of steps is an operand of one statement, which needs it in any case, and once."""
    if len(users) != 1 or sum(_count(user, array) for user in users) != 1:
        return False
    (user,) = users
    parts = list(walk(user.value))
    lazy = any(isinstance(p, Select) or (isinstance(p, Binary) and p.op in (AND, OR)) for p in parts)
    own = {p.position for p in parts if isinstance(p, Read)} & _places(user, array)
    return bool(own) and not lazy and not has_procedure(user.value)


def is_value(giving: ScopStatement) -> bool:
    """Return whether a statement always computes its target, from other arrays."""
    return (
        giving.condition is None
        and not giving.target.computed
        and all(read.array != giving.target.array for read in giving.reads)
    )


def _is_copy(giving: ScopStatement) -> bool:
    """Whether a value is an element as it is, or an integer in another type, at a place that is no data."""
    match giving.value:
        case Read():
            is_alike = True
        case Convert(type=kind, operand=Read() as read):
            is_alike = not kind.is_float and not read.type.is_float
        case _:
            is_alike = False
    return is_alike and not any(read.computed for read in giving.reads)


def _is_unchanged(
    giving: ScopStatement, user: ScopStatement, scop: Scop, entries: dict[str, Entries]
) -> bool:
    """Whether what a value is made of is, in each iteration, not written before ``user`` reads the value.

    A loop inside the iteration reads it again after all that stands in that loop.
    """
    first, last = order_of(entries[giving.name]), order_of(entries[user.name])
    if len(user.iterators) > len(giving.iterators):  # it runs until that loop ends
        last = (*last[: depth_of(entries[giving.name]) + 1], inf)
    between = [s for s in scop.statements if s is not giving and first < order_of(entries[s.name]) < last]
    return not any(
        write.target.array == read.array and not _are_apart(giving, read, write, entries)
        for write in between
        for read in giving.reads
    )


def _are_apart(
    giving: ScopStatement, read: ScopAccess, write: ScopStatement, entries: dict[str, Entries]
) -> bool:
    """Whether a statement writes, in each iteration, another element than the one that is read in it."""
    if read.computed or write.target.computed:
        return False
    if not is_in_loops_of(entries[giving.name], entries[write.name]):
        return False
    return lifted_access(read, giving, write).is_disjoint(write.target.relation)


def _places(statement: ScopStatement, array: str) -> frozenset[int]:
    return frozenset(k for k, read in enumerate(statement.reads) if read.array == array)


def _count(statement: ScopStatement, array: str) -> int:
    """Return how often a statement's expressions use an array."""
    places = _places(statement, array)
    return sum(
        isinstance(part, Read) and part.position in places
        for value in _expressions(statement)
        for part in walk(value)
    )


def _expressions(statement: ScopStatement) -> list[Expression]:
    indices = (
        v for a in (statement.target, *statement.reads) for v in (*a.indices, *dict(a.computed).values())
    )
    condition = () if statement.condition is None else (statement.condition,)
    return [statement.value, *condition, *indices]


def _is_given(giving: ScopStatement, user: ScopStatement, entries: dict[str, Entries]) -> bool:
    """Whether a statement reads, in each iteration, just what the other one gave in the same one.

    The other one is the only one that writes the array, else ``user`` would be among those that write it.
    """
    a, b = entries[giving.name], entries[user.name]
    if user.target.array == giving.target.array or not is_in_loops_of(a, b) or order_of(a) >= order_of(b):
        return False
    if len(user.iterators) > len(giving.iterators) and not _is_copy(giving):
        return False
    inside = lifted(giving, user)
    target = inside.target.relation.set_tuple_name(_DIM.in_, user.name)
    reads = [read for read in user.reads if read.array == giving.target.array]
    return all(
        not read.computed
        and read.relation.is_equal(target.intersect_domain(read.relation.domain()))
        and read.relation.domain().is_subset(inside.domain.set_tuple_name(user.name))
        for read in reads
    )


def with_value(user: ScopStatement, giving: ScopStatement, places: Collection[int]) -> ScopStatement:
    """Return a statement with the value of another one, which is in its loops, in place of some reads."""
    both, shift = appended_reads(user, giving)
    inside = [read.relation.domain() for k, read in enumerate(user.reads) if k in places]
    domain = inside[0]
    for other in inside[1:]:
        domain = domain.union(other)
    kept = [k for k in range(len(both.reads)) if k not in places]
    moved = {k: at for at, k in enumerate(kept)}
    value = _renumbered(giving.value, {k: moved[k + shift] for k in range(len(giving.reads))}, {})
    replacements = dict.fromkeys(places, value)

    def changed(expression: Expression) -> Expression:
        return _renumbered(expression, moved, replacements, giving.target.array)

    def access(given: ScopAccess, where: isl.Set | None) -> ScopAccess:
        relation = given.relation if where is None else given.relation.intersect_domain(where)
        computed = tuple((place, changed(index)) for place, index in given.computed)
        return replace(
            given, relation=relation, computed=computed, indices=tuple(map(changed, given.indices))
        )

    return replace(
        both,
        target=access(both.target, None),
        reads=tuple(access(both.reads[k], domain if k >= shift else None) for k in kept),
        value=changed(both.value),
        condition=None if both.condition is None else changed(both.condition),
    )


def _renumbered(
    expression: Expression, moved: dict[int, int], replacements: Mapping[int, Expression], name: str = ""
) -> Expression:
    """Return an expression with other numbers for its reads, and values in place of some of them.

    Procedures begin with giving a value the ``name``, so that loops in them do not compute it again.
    """

    def change(part: Expression) -> Expression | None:
        match part:
            case Procedure(body=body, result=result) if replacements.keys() & set(read_positions(part)):
                value = next(iter(replacements.values()))
                own = Local(fresh(name, set(locals_of(body))), value.type)
                named = dict.fromkeys(replacements, own)
                steps = rebuilt_steps(body, lambda e: _renumbered(e, moved, named))
                return Procedure((Assign(own, value), *steps), result)
            case Compare(op=CompareOp.NE, left=Read(position=k), right=Constant(value=0)) if (
                k in replacements
            ):
                return _truth(replacements[k])
            case Read(position=k) if k in replacements:
                return replacements[k]
            case Read(position=k):
                return Read(moved[k], part.type)
            case _:
                return None

    return rebuilt(expression, change)


def _truth(value: Expression) -> Expression:
    """Return whether a value is not 0; of a condition that is kept as 1 or 0, the condition."""
    match value:
        case Select(condition=condition, then=Constant(value=1), otherwise=Constant(value=0)):
            return condition
        case _:
            return Compare(CompareOp.NE, value, Constant(0, value.type))
