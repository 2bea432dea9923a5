"""Elements of a kernel's own arrays that are loaded before they are stored, and terms that are never loaded.

A load is right where each of its elements was stored after the array was declared: in the same iteration of
the loops around both, further up in the text, or in an earlier iteration of one of them. Items of a group see
what all of them have stored; that a barrier is between them, ``races`` proves. In the same way the term of
an md_hom is loaded later, or it is lost; so is part of an array that groups share, and what an item leaves
to others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from polyloom.mdh.tree.accesses import OPERATIONS, Access, Around, Found
from polyloom.mdh.tree.nodes import Array, Kind, Parameter, Space
from polyloom.mdh.tree.races import by_array, common_steps
from polyloom.polyhedra.loops.accesses import Apart, Elements, NotKnown, Pair, alone, question


def undefined(found: Found, terms: Collection[str], *, shared: bool) -> None:
    """Add to what is wrong, or not known, loads of what was never stored, and terms that are lost.

    ``terms``: statements whose values are of use; others may leave what nobody loads. ``shared``: whether
    all elements of arrays that groups share are of use, and what items store for each other, but for copies.
    """
    for accesses in by_array(found.accesses):
        if isinstance(accesses[0].declared.array, Array):
            stores, loads = [a for a in accesses if a.is_store], [a for a in accesses if not a.is_store]
            for load in loads:
                _check(load, stores, found, earlier=True)
            for store in stores:
                if store.statement in terms or (shared and _is_shared(store, found)):
                    _check(store, loads, found, earlier=False)


def _is_shared(store: Access, found: Found) -> bool:
    """Return whether a store is to an array of all groups, or of all items of one and no copy.

    Copies have what nobody loads where rows are read with a step. Some wait in registers in between. Nor is
    it asked of the last total whether there is one.
    """
    array = store.declared.array
    if not isinstance(array, Array) or (array.totals is not None and array.totals.is_flag):
        return False
    inside = {step.around.loop.kind for step in store.path[store.declared.depth :] if step.around is not None}
    of_items = array.space is Space.GROUP and Kind.ITEM in inside
    return Kind.GROUP in inside or (of_items and not _is_copy_in_the_end(store, found))


def _is_copy_in_the_end(store: Access, found: Found) -> bool:
    before = [a for a in found.accesses if a.is_store and a.declared is store.copied]
    return _is_copy(store) or (bool(before) and all(map(_is_copy, before)))


def _is_copy(store: Access) -> bool:
    """Return whether what is stored is in a constant array, too."""
    source = store.copied.array if store.copied is not None else None
    return isinstance(source, Parameter) and source.constant


_QUESTIONS = {
    True: ("stored before it is loaded", "loaded before it is stored"),
    False: ("loaded after it is stored", "stored and never loaded after"),
}
"""What is asked of a load, and of a store; what is wrong with it."""


def _check(access: Access, others: Sequence[Access], found: Found, *, earlier: bool) -> None:
    """Look for an element without another access that is earlier, or later."""
    name = access.declared.array.name
    asked, wrong = _QUESTIONS[earlier]
    text = f"whether `{name}` is {asked}"
    try:
        with question(text, OPERATIONS):
            sure = [other for other in others if other.sure]
            element = alone(access.elements, _ordered(access, sure, earlier), earlier=earlier)
    except NotKnown:
        found.unknown[text] = None
        return
    if element is None:
        return
    if access.sure and all(other.sure for other in others):
        found.wrong[f"`{name}` is {wrong}, at {element}"] = None
    else:
        found.unknown[f"{text}: data chooses it, or it is not affine"] = None


def _ordered(
    access: Access, others: Sequence[Access], earlier: bool
) -> Iterator[tuple[Elements, list[Pair]]]:
    """Yield others with the points of theirs that are before a point of an access, or after it."""
    for other in others:
        if _is_further_up(other, access) if earlier else _is_further_up(access, other):
            yield other.elements, [_equal(a) for a in _shared(access, other)]
    for other in others:
        shared = _shared(access, other)
        for k, around in enumerate(shared):
            if k >= _outside(access, shared) and around.loop.kind is not Kind.ITEM:
                yield other.elements, [*map(_equal, shared[:k]), _earlier(around)]


def _shared(access: Access, other: Access) -> list[Around]:
    """Return the loops around both whose iterators matter: not those of items that share an array."""
    steps = access.path[: common_steps(access, other)]
    array = access.declared.array
    of_items = isinstance(array, Array) and array.space is Space.GROUP
    return [
        step.around
        for depth, step in enumerate(steps)
        if step.around is not None
        and not (of_items and depth >= access.declared.depth and step.around.loop.kind is Kind.ITEM)
    ]


def _outside(access: Access, shared: Sequence[Around]) -> int:
    """Return how many of the loops are around the array's declaration."""
    outer = [step.around for step in access.path[: access.declared.depth]]
    return sum(around in outer for around in shared)


def _is_further_up(first: Access, second: Access) -> bool:
    common = common_steps(first, second)
    if common == min(len(first.path), len(second.path)):
        return False
    a, b = first.path[common], second.path[common]
    return a.block is b.block and a.index < b.index


def _equal(around: Around) -> Pair:
    return Pair(around.position, around.position, Apart.EQUAL)


def _earlier(around: Around) -> Pair:
    return Pair(around.position, around.position, Apart.BEFORE)
