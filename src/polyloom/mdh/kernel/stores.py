"""How results of a register tile get to memory."""

from __future__ import annotations

from polyloom.ir.host import View
from polyloom.ir.types import ElementType
from polyloom.mdh.kernel.loads import Place
from polyloom.mdh.kernel.state import State, conditions
from polyloom.mdh.print.values import store, value_type
from polyloom.mdh.schedule.addresses import Access, access_of, scaled
from polyloom.polyhedra.loops.tree import Number, names_in, sum_of


def store_results(
    state: State, views: tuple[View, ...], place: Place, values: tuple[str, ...], condition: str | None
) -> None:
    """Store a value per view at a place where ``condition`` and the md_hom's ``written`` hold."""
    if _written_varies(state, place):
        for lane in range(place.width):
            parts = tuple(_lane(value, lane, place.width) for value in values)
            _store_at(state, views, place.lane(lane), parts, condition)
    else:
        _store_at(state, views, place, values, condition)


def _written_varies(state: State, place: Place) -> bool:
    """Whether some elements of a vector may be stored and others not."""
    written = state.hom.written
    if written is None or place.vector is None or place.width == 1:
        return False
    return state.hom.iterators[place.vector] in names_in(written)


def _store_at(
    state: State, views: tuple[View, ...], place: Place, values: tuple[str, ...], condition: str | None
) -> None:
    whole = conditions([condition, state.condition(state.hom.written, place)])
    if whole is None:
        _stores(state, views, place, values)
        return
    with state.lines.block(f"if ({whole})"):
        _stores(state, views, place, values)


def _stores(state: State, views: tuple[View, ...], place: Place, values: tuple[str, ...]) -> None:
    for view, value in zip(views, values, strict=True):
        store_vector(state, view, place, value, state.facts.schedule.streaming)


def store_vector(state: State, view: View, place: Place, value: str, streams: bool = False) -> None:
    """Store ``place.width`` elements: as a vector where they are neighbours in memory.

    ``streams``: such vectors may bypass the caches.
    """
    access = access_of(view, state.signature.buffers, len(place.positions))
    assert access is not None
    name, element = state.signature.names[view.buffer], access.buffer.type
    if place.width == 1:
        state.lines.add(store(name, address(state, access, place), value, element))
    elif place.vector is not None and access.is_unit(place.vector):
        _whole_vector(state, access, place, value, streams)
    else:
        for lane in range(place.width):
            where = address(state, access, place.lane(lane))
            state.lines.add(store(name, where, _lane(value, lane, place.width), element))


def _whole_vector(state: State, access: Access, place: Place, value: str, streams: bool) -> None:
    name, width = state.signature.names[access.buffer.name], place.width
    where = address(state, access, place)
    if access.buffer.type is ElementType.FLOAT16:
        state.lines.add(f"store_half{width}({value}, {name} + {where});")
        return
    plain = f"vstore{width}({value}, 0, {name} + {where});"
    if not (streams and _rows_are_aligned(state, access, place)):
        state.lines.add(plain)
        return
    kind = value_type(access.buffer.type, width)
    state.lines.add(f"STREAM({kind}, {width}, {value}, {name} + {where});")


def _rows_are_aligned(state: State, access: Access, place: Place) -> bool:
    """Whether a vector begins at a multiple of its size, if the buffer does."""
    width, vector = place.width, place.vector
    strides = [s for d, s in enumerate(access.strides) if d != vector and d in state.facts.kept]
    multiples = all(isinstance(s, Number) and s.value % width == 0 for s in (*strides, access.base))
    whole = vector is not None and state.facts.divides(vector, width)
    return multiples and whole


def address(state: State, access: Access, place: Place) -> str:
    """Return an element's place in its buffer."""
    terms = [(1, scaled(s, x)) for s, x in zip(access.strides, place.positions, strict=True)]
    return state.c(sum_of([*terms, (1, access.base)]))


def _lane(value: str, lane: int, width: int) -> str:
    """Return one element of a vector."""
    return value if width == 1 else f"{value}.s{lane:x}"


def load_vector(state: State, view: View, place: Place) -> str:
    """Return the load of ``place.width`` elements of a buffer whose elements are values as they are."""
    access = access_of(view, state.signature.buffers, len(place.positions))
    assert access is not None
    name = state.signature.names[view.buffer]
    if place.width > 1 and place.vector is not None and access.is_unit(place.vector):
        return f"vload{place.width}(0, {name} + {address(state, access, place)})"
    lanes = [f"{name}[{address(state, access, place.lane(lane))}]" for lane in range(place.width)]
    return (
        lanes[0]
        if len(lanes) == 1
        else f"({value_type(access.buffer.type, place.width)})({', '.join(lanes)})"
    )


STREAM = """#if defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM(type, width, value, place) __builtin_nontemporal_store(value, (__global type *)(place))
#endif
#endif
#ifndef STREAM
#define STREAM(type, width, value, place) vstore##width(value, 0, place)
#endif
"""
"""Stores that bypass the caches, where the compiler has them: at multiples of their size only."""
