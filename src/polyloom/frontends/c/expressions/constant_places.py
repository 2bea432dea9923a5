"""Places in memory with constant subscripts that a part leaves as they are: ``p->n``, ``g[0]``, ``*n``.

An integer there is a parameter where a loop's head needs it; a member of a structure, or what a pointer
points to, also where a subscript or a condition does. A pointer there is an array of its own. Whether the
part writes the place is known after the walk, which then starts anew.

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.frontends.c.integers.affine import constant_of
from polyloom.frontends.c.scope.names import Known, Place, Variable
from polyloom.frontends.c.scope.parameters import new_parameter
from polyloom.frontends.c.scope.state import ConstantElement, ConstantElements, State
from polyloom.frontends.c.scope.types import Pointer, Scalar
from polyloom.scop.model import Origin


def integer_at(place: Place, state: State, *, wanted: bool = False) -> Known | None:
    """Return the parameter that the integer at a place is, if it is one, or if it is ``wanted`` to be."""
    kind = place.type
    if not isinstance(kind, Scalar) or kind.boolean or kind.element.is_float:
        return None
    path = _path(place, state)
    if path is None:
        return None
    if path not in state.elements.integers:
        if not wanted and path not in state.elements.wanted:
            return None
        variable = _variable(place, path, state)
        known = new_parameter(variable.unique, kind.element, state)
        state.elements.integers[path] = ConstantElement(place, variable, known)
    return state.elements.integers[path].known


def pointer_at(place: Place, state: State) -> Variable | None:
    """Return the array that a pointer in memory points to, if the pointer stays as it is."""
    path = _path(place, state)
    if path is None or not isinstance(place.type, Pointer):
        return None
    if path not in state.elements.pointers:
        state.elements.pointers[path] = ConstantElement(place, _variable(place, path, state))
    return state.elements.pointers[path].variable


def _path(place: Place, state: State) -> str | None:
    """Return a place as C names it; None where it has none, is made inside the part, or is written by it."""
    if place.variable.origin is Origin.INNER or not (place.indices or place.members):
        return None
    numbers = [None if i.affine is None else constant_of(i.affine) for i in place.indices]
    if any(n is None or n < 0 for n in numbers):
        return None
    text, used = "", 0
    for name, count in zip((place.variable.name, *place.members), place.levels, strict=True):
        subscripts = "".join(f"[{n}]" for n in numbers[used : used + count])
        text += f".{name}{subscripts}" if text else f"{name}{subscripts}"
        used += count
    return None if text in state.elements.refused else text


def _variable(place: Place, path: str, state: State) -> Variable:
    """Return a variable for what stands at a place: ``p_n`` for ``p->n``, ``g_0`` for ``g[0]``.

    A pointer in a ``const`` structure is ``const`` itself; what it points to is what its type says.
    """
    plain = path.replace("[0].", ".").replace("].", ".")
    words = "".join(c if c.isalnum() or c == "_" else " " for c in plain).split()
    unique = state.fresh("_".join(words))
    behind = place.type.constant if isinstance(place.type, Pointer) else place.variable.constant
    return Variable(path, unique, place.type, Origin.ARGUMENT, behind, place.variable.span)


def broken(state: State) -> frozenset[str]:
    """Return the paths of places that were taken to stay as they are, and that a statement writes."""
    targets = [p for d in state.drafts for p in (d.target, *d.writes) if p is not None]
    written = {_array(state.arrays[state.pool[p].array].place) for p in targets}
    elements = {**state.elements.integers, **state.elements.pointers}
    return frozenset(path for path, element in elements.items() if _array(element.place) in written)


def _array(place: Place) -> tuple[Variable, tuple[str, ...]]:
    return place.variable, place.members


def next_walk(state: State) -> ConstantElements | None:
    """Return what another walk has to begin with; None where this one was right."""
    before, bad = state.elements, broken(state)
    found = frozenset(before.integers) - bad
    if not bad and found <= before.wanted:
        return None
    return ConstantElements(wanted=(before.wanted | found) - bad, refused=before.refused | bad)


def check_spots(state: State) -> None:
    """Refuse an array of which one element is a parameter and others are data: they are given apart.

    Errors: ``c-bound``.
    """
    found = tuple(_mixed(state))
    if found:
        raise Unsupported(*found)


def _mixed(state: State) -> Iterator[Diagnostic]:
    for path, element in state.elements.integers.items():
        name = state.array_names.get(_array(element.place))
        access = next((a for a in state.pool if a.array == name), None)
        if access is not None:
            yield error(
                "c-bound",
                f"`{path}` decides how often a loop runs, and the array around it is data as well",
                access.span,
                helps=[f"keep it in a variable before the SCoP: `int n = {path};`"],
            )
