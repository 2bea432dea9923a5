"""Elements of a kernel's own arrays that are loaded before anything has stored them.

A load is right where each of its elements was stored after the array was declared: in the same iteration of
the loops around both, further up in the text, or in an earlier iteration of one of them. Items of a group see
what all of them have stored; that a barrier is between them, ``races`` proves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polyloom.mdh.tree.accesses import OPERATIONS, Access, Around, Found
from polyloom.mdh.tree.nodes import Array, Kind, Space
from polyloom.mdh.tree.races import by_array, common_steps
from polyloom.polyhedra.loops.accesses import Apart, Elements, NotKnown, Pair, not_stored, question


def undefined(found: Found) -> None:
    """Add to what is wrong, or not known, the elements that are loaded before they are stored."""
    for accesses in by_array(found.accesses):
        if isinstance(accesses[0].declared.array, Array):
            stores = [a for a in accesses if a.is_store]
            for load in accesses:
                if not load.is_store:
                    _check(load, stores, found)


def _check(load: Access, stores: Sequence[Access], found: Found) -> None:
    name = load.declared.array.name
    text = f"whether `{name}` is stored before it is loaded"
    try:
        with question(text, OPERATIONS):
            element = not_stored(load.elements, _before(load, [s for s in stores if s.sure]))
    except NotKnown:
        found.unknown[text] = None
        return
    if element is None:
        return
    if load.sure and all(s.sure for s in stores):
        found.wrong[f"`{name}` is loaded before it is stored, at {element}"] = None
    else:
        found.unknown[f"{text}: data chooses it, or it is not affine"] = None


def _before(load: Access, stores: Sequence[Access]) -> Iterator[tuple[Elements, list[Pair]]]:
    """Yield stores with the points of theirs that are before a point of the load, likely ones first."""
    for store in stores:
        if _is_further_up(store, load):
            yield store.elements, [_equal(a) for a in _shared(load, store)]
    for store in stores:
        shared = _shared(load, store)
        for k, around in enumerate(shared):
            if k >= _outside(load, shared) and around.loop.kind is not Kind.ITEM:
                yield store.elements, [*map(_equal, shared[:k]), _earlier(around)]


def _shared(load: Access, store: Access) -> list[Around]:
    """Return the loops around both whose iterators matter: not those of items that share an array."""
    steps = load.path[: common_steps(load, store)]
    array = load.declared.array
    of_items = isinstance(array, Array) and array.space is Space.GROUP
    return [
        step.around
        for depth, step in enumerate(steps)
        if step.around is not None
        and not (of_items and depth >= load.declared.depth and step.around.loop.kind is Kind.ITEM)
    ]


def _outside(load: Access, shared: Sequence[Around]) -> int:
    """Return how many of the loops are around the array's declaration."""
    outer = [step.around for step in load.path[: load.declared.depth]]
    return sum(around in outer for around in shared)


def _is_further_up(store: Access, load: Access) -> bool:
    common = common_steps(load, store)
    if common == min(len(load.path), len(store.path)):
        return False
    a, b = store.path[common], load.path[common]
    return a.block is b.block and a.index < b.index


def _equal(around: Around) -> Pair:
    return Pair(around.position, around.position, Apart.EQUAL)


def _earlier(around: Around) -> Pair:
    return Pair(around.position, around.position, Apart.BEFORE)
