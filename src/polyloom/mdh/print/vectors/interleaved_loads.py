"""Vectors whose elements take turns in memory, loaded as whole lines.

    vector for l from 0 to 16:
      x[l] = p[3 * (i + l)]                      load3_float32x16(&p[3 * i], parts_0);
    vector for l from 0 to 16:             ->    x = parts_0[0];
      y[l] = p[3 * (i + l) + 2]                  y = parts_0[2];

Parts of complex numbers, coordinates and colours of a pixel lie like this. Each loaded for itself takes as
many loads and shuffles as all of them together. Nothing is loaded that lies outside of what is loaded anyway:
the first and the last element of a record are among what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from polyloom.ir.types import ElementType
from polyloom.mdh.device.costs import NEAR
from polyloom.mdh.print.c_scope import Scope, at_zero, row_by_row
from polyloom.mdh.print.dialect import LOADED_IN_TURN
from polyloom.mdh.print.vectors.c_vectors import VectorLoop, is_vector_width
from polyloom.mdh.print.vectors.turned_blocks import may_meet
from polyloom.mdh.tree.nodes import Array, Code, For, Kind, Load, Space, Statement, Store
from polyloom.mdh.tree.rewrite import loads_of
from polyloom.polyhedra.loops.tree import IntExpression, Number, sum_of

LEAST_LANES = 4
"""Vectors of fewer elements are filled one by one."""


@dataclass
class Parts:
    """Of a vector loop: the lines ``before`` it, and what loads in it are called."""

    before: list[str] = field(default_factory=list)
    names: dict[Load, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Element:
    """A load of a vector in statement ``at`` of a block: where its first element is."""

    at: int
    load: Load
    place: IntExpression
    step: int
    loop: VectorLoop

    @property
    def records(self) -> tuple[str, int, int]:
        """The array, the distance of its elements and their number: those of one group have the same."""
        return self.load.array, self.step, self.loop.width


def interleaved_loads(code: Code, scope: Scope, others: Iterable[int] = ()) -> Mapping[int, Parts]:
    """Return the parts that vector loops of a block find in registers, by their positions in it.

    ``others``: positions of statements that are printed in another way.
    """
    found: dict[int, Parts] = {}
    if not set(LOADED_IN_TURN.values()) <= scope.dialect.moves.keys():
        return found
    for number, group in enumerate(_records(code, scope, frozenset(others))):
        first, name = min(group, key=lambda e: e.at), f"parts_{number}"
        step, lowest = first.step, min(group, key=lambda e: _between(e, first))
        kind, width = scope.variables[first.load.array].type, first.loop.width
        address, family = lowest.loop.address(lowest.load), LOADED_IN_TURN[step]
        found.setdefault(first.at, Parts()).before += [
            f"{scope.dialect.type(kind, width)} {name}[{step}];",
            scope.dialect.move(family, kind, width, address=address, name=name),
        ]
        for element in group:
            part = found.setdefault(element.at, Parts())
            part.names[element.load] = f"{name}[{_between(element, lowest)}]"
    return found


def _between(a: _Element, b: _Element) -> int:
    """Return how many elements behind another one an element of the same record is."""
    distance = sum_of([(1, a.place), (-1, b.place)])
    assert isinstance(distance, Number)
    return distance.value


def _records(code: Code, scope: Scope, others: frozenset[int]) -> Iterator[list[_Element]]:
    """Yield loads whose elements are all of some records, with nothing between that changes these."""
    waiting: list[list[_Element]] = []
    registers = {s.name for s in code if isinstance(s, Array) and s.space is Space.REGISTER}
    for at, statement in enumerate(code):
        if isinstance(statement, Array):
            continue
        if at in others or not _is_straight(statement, scope):
            yield from _whole(waiting)
            waiting = []
            continue
        assert isinstance(statement, For)
        for store in statement.body:
            assert isinstance(store, Store)
            for load in dict.fromkeys(loads_of(store)):
                element = _element(at, load, statement, scope)
                if element is not None:
                    _add(element, waiting)
            if store.array not in registers and not _is_held(store.array, scope):
                met = [group for group in waiting if _may_meet(group, store, scope)]
                waiting = [group for group in waiting if group not in met]
                yield from _whole(met)
    yield from _whole(waiting)


def _is_straight(statement: Statement, scope: Scope) -> bool:
    """Return whether a statement stores vectors, and does nothing else."""
    if not isinstance(statement, For) or statement.kind is not Kind.VECTOR:
        return False
    straight, end = all(isinstance(s, Store) for s in statement.body), statement.end
    width = end.value if isinstance(end, Number) else 0
    return straight and width >= LEAST_LANES and is_vector_width(width, scope.dialect)


def _is_held(array: str, scope: Scope) -> bool:
    """Return whether an array is known to be in registers."""
    variable = scope.variables.get(array)
    return variable is not None and (variable.held or variable.lanes > 0)


def _may_meet(group: list[_Element], store: Store, scope: Scope) -> bool:
    """Return whether a store may change what a group loads; arrays of this block lie apart from others."""
    return store.array in scope.variables and may_meet(group[0].load, store, scope)


def _element(at: int, load: Load, loop: For, scope: Scope) -> _Element | None:
    variable = scope.variables.get(load.array)
    assert isinstance(loop.end, Number)
    if variable is None or variable.held or variable.lanes or not load.subscripts:
        return None
    if variable.type in (ElementType.FLOAT16, ElementType.BOOL):
        return None
    printer = VectorLoop(loop.iterator, loop.end.value, scope)
    step = printer.distance(load)
    if not isinstance(step, Number) or step.value not in NEAR:
        return None
    place = row_by_row(load.subscripts, variable)
    if place is None:
        return None
    first = at_zero(place, loop.iterator)
    return _Element(at=at, load=load, place=first, step=step.value, loop=printer)


def _add(element: _Element, groups: list[list[_Element]]) -> None:
    """Add a load to those of the same records, or begin a group."""
    for group in groups:
        first = group[0]
        if first.records != element.records:
            continue
        distance = sum_of([(1, element.place), (-1, first.place)])
        if isinstance(distance, Number):
            places = [distance.value, *(_between(e, first) for e in group)]
            if max(places) - min(places) < element.step:
                group.append(element)
                return
    groups.append([element])


def _whole(groups: list[list[_Element]]) -> Iterator[list[_Element]]:
    """Yield groups with the first and the last element of their records."""
    for group in groups:
        places = [_between(element, group[0]) for element in group]
        if max(places) - min(places) == group[0].step - 1:
            yield group
