"""Partial results of a reduction, each combined once into the whole, by the reduction's operator.

    float32 part[8] in group, totals under a + b from 0
    parallel for p from 0 to 8:
      part[p] = 0
      for k from 64 * p to 64 * p + 64: part[p] = part[p] + x[k]
    total = 0
    for p from 0 to 8: total = total + part[p]

An array says of itself that its elements are totals (``Array.totals``). Then a store to it is a start, with
the neutral element, a step, or brings what another total is, or what two others are together. Where they are
totals of parts, each element that is stored is loaded once, to be combined with another total; not so where
nothing but starts is stored. One of two others together is stored once, and nothing else there.
Loops that combine in any order (``Kind.REDUCING``) store nothing else.
What goes through some steps in another array and comes back (``visits``) is combined by neither move. In
which order, and that nothing is added after, ``undefined`` proves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from math import isnan

from polyloom.ir.expressions import Constant, Expression, Read
from polyloom.mdh.tree.accesses import OPERATIONS, Access, Declared, Found
from polyloom.mdh.tree.nodes import Array, Compute, Kind, Load, Statement, Store, Totals
from polyloom.mdh.tree.races import by_array
from polyloom.mdh.tree.text import compute_text
from polyloom.mdh.tree.totals.visits import is_own, statement_of, visits
from polyloom.polyhedra.loops.accesses import NotKnown, carried_out, inside, only_in, question, repeated


def partials(found: Found, *, whole: bool) -> None:
    """Add to what is wrong, or not known, what is not so of arrays of totals.

    ``whole``: whether all results are of use; else some parts may be of none.
    """
    _reduced(found)
    marked = [(a, accesses) for accesses in by_array(found.accesses) if (a := _marked(accesses)) is not None]
    filled = _filled([a for _, accesses in marked for a in accesses])
    visiting = visits([accesses for _, accesses in marked])
    for array, accesses in marked:
        combined = accesses[0].declared in filled - visiting.arrays
        staying = [a for a in accesses if a not in visiting.moves]
        alike = frozenset(other.name for other, _ in marked if other.totals == array.totals)
        _check(array, staying, alike, found, whole=whole, filled=combined)


def _reduced(found: Found) -> None:
    """Look for what loops that combine in any order store besides totals."""
    for access in found.accesses:
        inside = (step.around for step in access.path[access.declared.depth :])
        is_reduced = any(around is not None and around.loop.kind is Kind.REDUCING for around in inside)
        if access.is_store and is_reduced and _marked([access]) is None:
            name = access.declared.array.name
            found.wrong[f"`{name}` is stored in a loop that combines in any order, and is no total"] = None


def _marked(accesses: Sequence[Access]) -> Array | None:
    array = accesses[0].declared.array
    return array if isinstance(array, Array) and array.totals is not None else None


def _filled(accesses: Sequence[Access]) -> frozenset[Declared]:
    """Return the arrays of totals into which something was combined, from elsewhere or out of another one."""
    names = {access.declared.array.name for access in accesses}
    loaded: dict[int, set[Declared]] = {}
    for access in accesses:
        if not access.is_store:
            loaded.setdefault(id(access.path), set()).add(access.declared)
    stores = [(a.declared, loaded.get(id(a.path), set()), statement_of(a)) for a in accesses if a.is_store]
    found = {array for array, _, store in stores if isinstance(store, Store) and _brings(store, names)}
    while more := {array for array, sources, _ in stores if sources & found} - found:
        found |= more
    return frozenset(found)


def _brings(store: Store, totals: Collection[str]) -> bool:
    """Return whether a store has something in it besides totals."""
    others = any(load.array not in totals for load in store.value.loads)
    return store.instance is not None or others or bool(store.value.iterators)


def _check(
    array: Array,
    accesses: Sequence[Access],
    alike: frozenset[str],
    found: Found,
    *,
    whole: bool,
    filled: bool,
) -> None:
    """Check one array; ``alike``: the arrays of such totals."""
    totals = array.totals
    assert totals is not None
    text = f"whether each `{array.name}` is combined once"
    if totals.result is None:
        if not totals.parts:
            return
        found.unknown[f"{text}: they are of several values"] = None
        return
    stores = [a for a in accesses if a.is_store]
    for access in stores:
        if not _may_be_stored(statement_of(access), totals, alike):
            found.wrong[f"`{array.name}` is stored, but not as a total: {_value(access)}"] = None
    together = [a for a in stores if _is_together(statement_of(a), totals.result, alike)]
    if together and len(together) < len(stores):
        found.wrong[f"`{array.name}` is stored over: it is what two other totals are together"] = None
    if not totals.parts or not filled:
        return
    takings = _apart([a for a in accesses if not a.is_store and not is_own(a)])
    for access in takings:
        if not _takes(statement_of(access), access, totals.result, alike):
            found.wrong[f"`{array.name}` is loaded, but not combined: {_value(access)}"] = None
    if not all(a.sure for a in (*stores, *takings)):
        found.unknown[f"{text}: data chooses, or a bound is not affine"] = None
        return
    _once(array.name, stores, takings, text, found, whole)
    _stored_once(array.name, together, text, found)


def _once(
    name: str, stores: Sequence[Access], takings: Sequence[Access], text: str, found: Found, whole: bool
) -> None:
    """Compare the elements that are stored with those that are taken, wherever the array is declared."""
    try:
        with question(text, OPERATIONS):
            taken = [inside(a.elements, _outer(a)) for a in takings]
            stored = carried_out([inside(a.elements, _outer(a)) for a in stores])
            twice = repeated(taken)
            lost = None if stored is None else only_in(stored, carried_out(taken), "[]")
    except NotKnown:
        found.unknown[text] = None
        return
    if twice is not None:
        found.wrong[f"`{name}` is combined twice, at {twice}"] = None
    if lost is not None and not whole:
        found.unknown[f"{text}: not all results are stored"] = None
    elif lost is not None:
        found.wrong[f"`{name}` is never combined, at {lost}"] = None


def _stored_once(name: str, stores: Sequence[Access], text: str, found: Found) -> None:
    """Refuse what two other totals are together where something else is stored later."""
    try:
        with question(text, OPERATIONS):
            twice = repeated([inside(a.elements, _outer(a)) for a in stores]) if stores else None
    except NotKnown:
        found.unknown[text] = None
        return
    if twice is not None:
        found.wrong[f"`{name}` is stored over, at {twice}"] = None


def _apart(loads: Sequence[Access]) -> list[Access]:
    """Return loads without what a statement reads again (``p < total ? p : total``)."""
    found: list[Access] = []
    for load in loads:
        if not any(load.path is other.path and load.subscripts == other.subscripts for other in found):
            found.append(load)
    return found


def _outer(access: Access) -> list[int]:
    """Return which of an access's integers are iterators around the declaration of its array."""
    steps = access.path[: access.declared.depth]
    return [step.around.position for step in steps if step.around is not None]


def _value(access: Access) -> str:
    statement = statement_of(access)
    return compute_text(statement.value) if isinstance(statement, Store) else "outside of a store"


def _may_be_stored(statement: Statement, totals: Totals, alike: frozenset[str]) -> bool:
    assert isinstance(statement, Store) and totals.result is not None
    match statement.value.expression:
        case Constant(value=value):
            return value == totals.neutral or (isnan(value) and isnan(totals.neutral or 0))
        case Read():
            return True  # what another total is
        case _:
            own = Load(statement.array, statement.subscripts)
            steps = any(own in pair for pair in _operands(statement.value, totals.result))
            return steps or _is_together(statement, totals.result, alike)


def _is_together(statement: Statement, result: Expression, alike: frozenset[str]) -> bool:
    """Return whether a statement stores what two totals are together, neither of which is there before."""
    if not isinstance(statement, Store):
        return False
    own = Load(statement.array, statement.subscripts)
    return any(
        a is not None and b is not None and a != b and own not in (a, b) and {a.array, b.array} <= alike
        for a, b in _operands(statement.value, result)
    )


def _takes(statement: Statement, access: Access, result: Expression, alike: frozenset[str]) -> bool:
    """Return whether a statement combines an element with the total that it stores, or with another one."""
    if not isinstance(statement, Store):
        return False
    own = Load(statement.array, statement.subscripts)
    other = Load(access.declared.array.name, tuple(s for s in access.subscripts if s is not None))
    pairs = [pair for pair in _operands(statement.value, result) if other in pair]
    return any((own, other) in ((a, b), (b, a)) for a, b in pairs) or (
        bool(pairs) and _is_together(statement, result, alike)
    )


def _operands(value: Compute, result: Expression) -> Iterable[tuple[Load | None, Load | None]]:
    """Yield what an operator combines in a value: loads, None for others; nothing for another operator."""
    bound: dict[int, Expression] = {}
    if _matches(result, value.expression, bound):
        sides = (bound.get(k) for k in (0, 1))
        left, right = (value.loads[e.position] if isinstance(e, Read) else None for e in sides)
        yield left, right


def _matches(pattern: Expression, expression: Expression, bound: dict[int, Expression]) -> bool:
    """Return whether an expression is a pattern with other expressions in place of its reads."""
    if isinstance(pattern, Read):
        return bound.setdefault(pattern.position, expression) == expression
    if type(pattern) is not type(expression):
        return False
    pairs = ((getattr(pattern, f.name), getattr(expression, f.name)) for f in fields(pattern))
    return all(_matches(a, b, bound) if isinstance(a, Expression) else a == b for a, b in pairs)
