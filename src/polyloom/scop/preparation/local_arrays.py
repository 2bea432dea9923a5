"""Elements of a small array that an iteration fills and then reads are computed where they are read.

    for (i ...) {                                  for (i ...)
      float t[4];                                    for (k ...)
      for (k ...) t[k] = x[4 * i + k] / 2;    ->       y[4 * i + k] = x[4 * i + 3 - k] / 2;
      for (k ...) y[4 * i + k] = t[3 - k];
    }

Without it the array gets an element for each ``i`` and each ``k``, which memory would hold. Of an array that
lives on the iterations stay whose elements nothing overwrites: the last one of ``i``. Unlike a value
with a name (``forward_substitution``) it is given in a loop that its readers do not stand in; which
iteration of that loop gave an element follows from its subscripts. An element is computed once for each read
of it in the source, as often as it was before where there is one.

Source: forward substitution (Allen and Kennedy 2001, Sec. 4.5). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator as Yields
from dataclasses import replace

import islpy as isl

from polyloom.ir.expressions import Expression, Iterator, instructions
from polyloom.ir.rebuild import rebuilt
from polyloom.polyhedra.functions import function_of
from polyloom.polyhedra.loops.affine_expressions import affine_value
from polyloom.polyhedra.loops.tree import IntExpression, Name
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.dependence.nesting import Entries, schedules, shared_loops
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopStatement
from polyloom.scop.preparation.forward_substitution import as_stored, is_value, with_value
from polyloom.scop.preparation.statements import without
from polyloom.scop.rewrite import integer_expression

_DIM = isl.dim_type

MOST_WORK = 24
"""Instructions and loads that elements may cost beyond the first time they are computed, for each of them.

A store, and a load for each read, of an array that no register holds are what they take the place of.
"""


def without_local_arrays(scop: Scop) -> Scop:
    """Return the part without arrays whose elements can be computed where they are read.

    Those that live on are filled, where they were, with what is left there in the end.
    """
    entries = schedules(scop)
    for name in [s.name for s in scop.statements]:
        giving = next(s for s in scop.statements if s.name == name)
        made = _with_elements(scop, giving, entries)
        scop = scop if made is None else made
    return scop


def _with_elements(scop: Scop, giving: ScopStatement, entries: dict[str, Entries]) -> Scop | None:
    """Return the part without a statement that fills an array, and without the array; None: it is needed.

    Of an array that lives on the statement stays for what it leaves, if that is less than all it computes.
    """
    array = next(a for a in scop.arrays if a.name == giving.target.array)
    users = [s for s in scop.statements if s is not giving and s.uses(array.name)]
    if not array.shape or not users or not _is_simple(giving):
        return None
    left = None if array.origin is Origin.INNER else _left(giving, scop)
    if array.origin is not Origin.INNER and left is None:
        return None
    value = replace(giving, value=as_stored(giving.value, array))
    made: dict[str, ScopStatement] = {}
    count = 0 if left is None else 1
    for user in users:
        shared = shared_loops(entries, [giving.name, user.name])
        if not (
            _is_given_before(giving, user, shared, entries) and _keeps(giving, user, shared, scop, entries)
        ):
            return None
        while (place := _first_read(user, array.name)) is not None:
            there = _iteration(giving, user, user.reads[place], shared, scop.context)
            placed = None if there is None else _placed(value, user, there)
            if placed is None:
                return None
            alike = {k for k, read in enumerate(user.reads) if _is_same(read, user.reads[place])}
            user = with_value(user, placed, alike)
            count += 1
        made[user.name] = user
    if (count - 1) * (instructions(value.value) + len(value.reads)) > MOST_WORK:
        return None
    if left is not None:
        made[giving.name] = replace(giving, domain=left)
    statements = tuple(made.get(s.name, s) for s in scop.statements)
    found = replace(scop, statements=statements)
    return found if left is not None else without(found, {giving.name})


def _left(giving: ScopStatement, scop: Scop) -> isl.Set | None:
    """Return the instances of a statement whose elements no later one overwrites; None: all, or in pieces."""
    time = next((m for m in maps_of(scop.schedule) if m.get_tuple_name(_DIM.in_) == giving.name), None)
    if time is None:
        return None
    given = giving.target.relation.intersect_domain(giving.domain)
    overwritten = given.apply_range(given.reverse()).intersect(time.lex_lt_map(time)).domain()
    left = giving.domain.subtract(overwritten).coalesce()
    return None if overwritten.is_empty() or left.n_basic_set() != 1 else left


def _is_simple(giving: ScopStatement) -> bool:
    """Whether a statement computes each element from affine accesses, and once in each iteration outside."""
    return is_value(giving) and not any(read.computed for read in giving.reads)


def _is_given_before(
    giving: ScopStatement, user: ScopStatement, shared: int, entries: dict[str, Entries]
) -> bool:
    """Whether a user runs, in each iteration of the shared loops, behind all of what gives there."""
    a, b = entries[giving.name][2 * shared], entries[user.name][2 * shared]
    inside = 0 < shared < len(giving.iterators)
    return inside and a is not None and b is not None and a < b and user.target.array != giving.target.array


def _keeps(
    giving: ScopStatement, user: ScopStatement, shared: int, scop: Scop, entries: dict[str, Entries]
) -> bool:
    """Whether nothing that elements are made of is written until the last of them is read.

    A statement that reads before it writes, in no loop of its own, writes too late to matter.
    """
    place = 2 * shared
    first, last = entries[giving.name][place], entries[user.name][place]
    assert first is not None
    assert last is not None
    made_of = {read.array for read in giving.reads}
    for other in scop.statements:
        own = entries[other.name]
        if other.target.array not in made_of or own[:place] != entries[giving.name][:place]:
            continue
        at = own[place]
        if at is None or first <= at < last or (at == last and len(other.iterators) > shared):
            return False
    return True


def _first_read(user: ScopStatement, array: str) -> int | None:
    return next((k for k, read in enumerate(user.reads) if read.array == array), None)


def _is_same(a: ScopAccess, b: ScopAccess) -> bool:
    return a.array == b.array and a.computed == b.computed and bool(a.relation.is_equal(b.relation))


def _iteration(
    giving: ScopStatement, user: ScopStatement, read: ScopAccess, shared: int, context: isl.Set
) -> isl.Map | None:
    """Return ``{ user -> giving }``: which iteration gave what is read; None where not one did each time.

    None, too, where several iterations of a user read one element: it would be computed for each.
    """
    if read.computed:
        return None
    given = giving.target.relation.intersect_domain(giving.domain)
    there = read.relation.intersect_domain(user.domain).apply_range(given.reverse())
    for k in range(shared):
        there = there.equate(_DIM.in_, k, _DIM.out, k)
    needed = read.relation.domain().intersect(user.domain).intersect_params(context)
    right = there.is_single_valued() and needed.is_subset(there.domain()) and there.is_injective()
    return there if right else None


def _placed(giving: ScopStatement, user: ScopStatement, there: isl.Map) -> ScopStatement | None:
    """Return a statement as if it stood in the loops of another one, and ran the iterations it reads."""
    values = list(_iterators(there, user))
    if len(values) != len(giving.iterators):
        return None

    def leaf(part: Expression) -> Expression | None:
        if not isinstance(part, Iterator):
            return None
        found = values[part.dimension]
        return integer_expression(found, {n: k for k, n in enumerate(_names(user))}, part.type)

    def moved(access: ScopAccess) -> ScopAccess:
        relation = there.apply_range(access.relation).set_tuple_name(_DIM.in_, user.name)
        return replace(access, relation=relation, indices=tuple(rebuilt(i, leaf) for i in access.indices))

    return replace(
        giving,
        domain=there.domain().set_tuple_name(giving.name),
        iterators=user.iterators,
        loops=user.loops,
        target=moved(giving.target),
        reads=tuple(map(moved, giving.reads)),
        value=rebuilt(giving.value, leaf),
    )


def _names(user: ScopStatement) -> list[str]:
    """Return names for the iterators of a statement that no parameter has."""
    return [f"#{k}" for k in range(len(user.iterators))]


def _iterators(there: isl.Map, user: ScopStatement) -> Yields[IntExpression]:
    """Yield the iterators of what gives as integer expressions of the user's; none where they have cases."""
    function = function_of(there).coalesce()
    arguments = [Name(name) for name in _names(user)]
    for k in range(function.dim(_DIM.out)):
        parts = function.get_pw_aff(k).coalesce().get_pieces()
        if len(parts) == 1:
            yield affine_value(parts[0][1], arguments)
