"""Which loops of a kernel tree go through the points of an iterator of a node, outermost first.

    parallel for i_group from 0 to 640 step 12:            i: parallel in tiles of 12, 12 at once
      for j_first from 0 to 480 step 16:                   j: tiles of 16, in vectors of 8
        unrolled for i_at from 0 to 12:
          unrolled for j_at from 0 to 16 step 8:
            vector for lane from 0 to 8: total[..] = ..    # S(i_group + i_at, j_first + j_at + lane)

Everything is read off the tree that is built, so that what is said of a loop is what is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from polyloom.ir.host import Assignment, HostProgram, Index, MdHom, Nest, View
from polyloom.ir.integers import integer
from polyloom.mdh.schedule.cost.loop_sizes import UNKNOWN
from polyloom.mdh.tree.nodes import Code, Compute, For, If, Kind, LetInteger, Store, Subscript
from polyloom.mdh.tree.rewrite import loads_of
from polyloom.polyhedra.loops.tree import IntExpression, Loop, Name, Number, Operation, names_in, nodes_in


@dataclass(frozen=True)
class Cut:
    """A loop of the tree; ``points`` of the iterator lie between two of its iterations (0: not known).

    ``extent``: of an unrolled or vector loop, how many points all of it has; else 0.
    ``around``: whether it is a loop around the node, not one of its schedule: blocks of several nodes.
    """

    loop: str
    kind: Kind
    points: int = 0
    extent: int = 0
    around: bool = False


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the iterators of a node went: ``cuts`` of each, outermost first.

    ``band``: the iterators of an md_hom, which may be tiled together; none of a sequential nest. ``times``:
    the same for the host loops around it. ``moving``: the iterators whose tiles move with host loops.
    """

    node: str
    band: tuple[str, ...]
    cuts: Mapping[str, tuple[Cut, ...]]
    times: Mapping[str, tuple[Cut, ...]]
    moving: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Visit:
    """A store that carries out instances of a node, and what stands around it, outermost first."""

    store: Store
    around: tuple[For | LetInteger | If, ...]

    @property
    def loops(self) -> tuple[For, ...]:
        """The loops around it."""
        return tuple(each for each in self.around if isinstance(each, For))


Item = MdHom | Assignment


def items_of(program: HostProgram) -> dict[str, Item]:
    """Return the md_homs of a program, and the assignments of its nests, by name."""
    found: dict[str, Item] = {}
    for node in nodes_in(program.body):
        match node:
            case MdHom():
                found.setdefault(node.name, node)
            case Nest(assignments=assignments):
                found |= {a.name: a for a in assignments if a.name not in found}
    return found


def host_iterators(program: HostProgram) -> tuple[str, ...]:
    """Return the iterators of a program's host loops, each once."""
    return tuple(dict.fromkeys(node.iterator for node in nodes_in(program.body) if isinstance(node, Loop)))


def visits(code: Code, around: tuple[For | LetInteger | If, ...] = ()) -> Iterator[Visit]:
    """Yield the stores that carry out instances of nodes, in their order."""
    for statement in code:
        match statement:
            case For(body=body):
                yield from visits(body, (*around, statement))
            case If(body=body, otherwise=otherwise):
                yield from visits(body, (*around, statement))
                yield from visits(otherwise, around)
            case LetInteger():
                around = (*around, statement)
            case Store(instance=instance) if instance is not None:
                yield Visit(statement, around)


def of_items(code: Code, items: Iterable[str]) -> dict[str, tuple[Visit, ...]]:
    """Return the stores of each node: of those that took its place, too (``S1_2``, ``S1_S2``)."""
    names, found = tuple(items), dict[str, tuple[Visit, ...]]()
    known: dict[str, tuple[str, ...]] = {}
    for visit in visits(code):
        assert visit.store.instance is not None
        name = visit.store.instance.statement
        known.setdefault(name, _meant(name, names))
        for item in known[name]:
            found[item] = (*found.get(item, ()), visit)
    return found


def _meant(name: str, items: Sequence[str]) -> tuple[str, ...]:
    """Return the nodes that an instance's name speaks of: itself, or those that its parts are."""
    if name in items:
        return (name,)
    inside = [item for item in items if re.search(rf"(?:^|_){re.escape(item)}(?:_|$)", name)]
    return tuple(item for item in inside if not any(item != other and item in other for other in inside))


def places(program: HostProgram, code: Code) -> dict[str, Place]:
    """Return where the iterators of each node went, and those of the host loops around it."""
    items, times = items_of(program), host_iterators(program)
    found = of_items(code, items)
    return {name: _place(name, items[name], here, times) for name, here in found.items()}


def _place(name: str, item: Item, found: Sequence[Visit], times: Sequence[str]) -> Place:
    visit = most_of(name, found)
    cuts: dict[str, tuple[Cut, ...]] = {}
    around: dict[str, tuple[Cut, ...]] = {}
    of_time: set[str] = set()
    for time in times:
        if any(loop.iterator == time for loop in visit.loops):
            here = _loops_of(visit, [Name(time)], len(item.iterators))
            around[time] = tuple(cut for _, cut in here)
            of_time |= {loop.iterator for loop, _ in here}
    moving = set()
    values = [_coordinates(visit, item, k) for k in range(len(item.iterators))]
    moved = [_loops_of(visit, each, len(item.iterators)) for each in values]
    for k, iterator in enumerate(item.iterators):
        here = [pair for pair in moved[k] if _is_of(pair[0].iterator, k, item.iterators, moved)]
        cuts[iterator] = tuple(cut for loop, cut in here if loop.iterator not in of_time)
        if cuts[iterator] and len(cuts[iterator]) < len(here):
            moving.add(iterator)
    band = item.iterators if isinstance(item, MdHom) else ()
    return Place(node=name, band=band, cuts=cuts, times=around, moving=frozenset(moving))


def most_of(name: str, found: Iterable[Visit]) -> Visit:
    """Return the store that carries out most instances of a node, not a piece left over at an end."""
    return max(found, key=lambda each: (_is_named(each, name), _instances(each), len(each.loops)))


def _is_named(visit: Visit, name: str) -> bool:
    """Whether a store is of the node, or of a piece of it; others start its results or end them."""
    instance = visit.store.instance
    return (
        instance is not None and re.fullmatch(rf"{re.escape(name)}(?:_\d+)*", instance.statement) is not None
    )


def _instances(visit: Visit) -> float:
    """Return about how many instances a store carries out: each loop as often as in the middle of others."""
    values: dict[str, int] = {}
    count = 1.0
    for each in visit.around:
        if isinstance(each, If):
            continue
        try:
            if isinstance(each, LetInteger):
                values[each.name] = integer(each.value, values)
                continue
            start, end, step = (integer(e, values) for e in (each.start, each.end, each.step))
        except (KeyError, ValueError, ZeroDivisionError):  # data, or a size that is not known, end it
            count *= UNKNOWN
            continue
        count *= max(0, ceil((end - start) / step))
        values[each.iterator] = start + (end - start) // (2 * step) * step
    return count


def _coordinates(visit: Visit, item: Item, k: int) -> list[IntExpression]:
    """Return what an iterator is in a store: in its instance, and in subscripts that depend on it alone."""
    assert visit.store.instance is not None
    arguments = visit.store.instance.arguments[-len(item.iterators) :]
    if len(arguments) < len(item.iterators):
        return []
    own = names_in(arguments[k])
    others = {name for argument in arguments for name in names_in(argument)} - own
    found = [e for view in views_of(item) for e in subscripts(visit, view, k)]
    return [*(e for e in found if own <= names_in(e) and not names_in(e) & others), arguments[k]]


def _is_of(loop: str, k: int, iterators: Sequence[str], moved: Sequence[Sequence[tuple[For, Cut]]]) -> bool:
    """Whether a loop is one of an iterator: those of another may decide where it begins (a triangle)."""
    deciding = [d for d, found in enumerate(moved) if any(each.iterator == loop for each, _ in found)]
    named = [d for d in deciding if loop == iterators[d] or loop.startswith(f"{iterators[d]}_")]
    return k == max(named, key=lambda d: len(iterators[d])) if named else k in deciding


def views_of(item: Item) -> tuple[View, ...]:
    """Return the views of a node, outputs first."""
    if isinstance(item, Assignment):
        return (item.target, *item.reads)
    return (*item.outputs, *item.inputs)


def subscripts(visit: Visit, view: View, k: int) -> Iterator[IntExpression]:
    """Yield the subscripts of a store that are an iterator and an offset, by one view of it."""
    for axis, index in enumerate(view.indices):
        if isinstance(index, Index) and _is_unit(index, k):
            yield from _at(visit, view.buffer, axis)


def _is_unit(index: Index, k: int) -> bool:
    return k < len(index.coefficients) and all(c == (d == k) for d, c in enumerate(index.coefficients))


def _at(visit: Visit, array: str, axis: int) -> Iterator[IntExpression]:
    places: list[tuple[Subscript, ...]] = [
        load.subscripts for load in loads_of(visit.store) if load.array == array
    ]
    if visit.store.array == array:
        places.insert(0, visit.store.subscripts)
    for place in places:
        if axis < len(place) and not isinstance(subscript := place[axis], Compute):
            yield subscript


def _loops_of(visit: Visit, values: Sequence[IntExpression], count: int) -> list[tuple[For, Cut]]:
    """Return the loops that decide about values, with the points between two of their iterations.

    ``count``: how many iterators the node has.
    """
    assert visit.store.instance is not None
    outside = {n for a in visit.store.instance.arguments[:-count] for n in names_in(a)}
    strides: dict[str, int] = {}
    for value in values:
        for name, factor in _factors(value).items():
            strides.setdefault(name, factor)
    found: list[tuple[For, Cut]] = []
    for each in reversed(visit.around):
        match each:
            case LetInteger(name=name, value=value) if name in strides:
                _pass_on(strides, value, strides[name])
            case For(iterator=name, start=start) if name in strides:
                _pass_on(strides, start, strides[name])
                found.append((each, replace(_cut(each, strides[name]), around=name in outside)))
    return found[::-1]


def _pass_on(strides: dict[str, int], value: IntExpression, factor: int) -> None:
    for name, inner in _factors(value).items():
        strides.setdefault(name, factor * inner)


def _cut(loop: For, factor: int) -> Cut:
    step = loop.step.value if isinstance(loop.step, Number) else 0
    return Cut(loop.iterator, loop.kind, abs(factor) * step, _extent(loop) * abs(factor))


def _extent(loop: For) -> int:
    if loop.kind not in (Kind.UNROLLED, Kind.VECTOR, Kind.MATRIX):
        return 0
    start, end = loop.start, loop.end
    return end.value - start.value if isinstance(start, Number) and isinstance(end, Number) else 0


def _factors(value: IntExpression, factor: int = 1) -> dict[str, int]:
    """Return by how much a value changes with each name in it, in one of its cases; 0: not known."""
    match value:
        case Name(name=name):
            return {name: factor}
        case Operation(operator="*", operands=(Number(value=number), inner)):
            return _factors(inner, factor * number)
        case Operation(operator="+" | "min" | "max", operands=operands):
            return _first(_factors(operand, factor) for operand in operands)
        case Operation(operator="-", operands=(inner,)):
            return _factors(inner, -factor)
        case Operation(operator="-", operands=(first, *others)):
            return _first([_factors(first, factor), *(_factors(other, -factor) for other in others)])
        case Operation(operator="%", operands=(inner, Number())):
            return _factors(inner, factor)
        case Operation(operands=operands):
            return _first(_factors(operand, 0) for operand in operands)
        case _:
            return {}


def _first(found: Iterable[dict[str, int]]) -> dict[str, int]:
    result: dict[str, int] = {}
    for each in found:
        result = {**each, **result}
    return result
