"""What is done once, when constants are bound, and not in each run: nodes of constants, and copies of them.

parallel for i_group from 0 to 512 step 32:       at load:
  w_copy[64, 32]                                    for i_group from 0 to 512 step 32:
  for c0 ...: for c1 ...:                   ->        for c0 ...: for c1 ...:
    w_copy[c1, c0] = w[i_group + c0, c1]                w_packed[i_group / 32, c1, c0] = w[i_group + c0, c1]
  ... w_copy[k, i - i_group] ...                  in each run:
                                                    parallel for i_group from 0 to 512 step 32:
                                                      ... w_packed[i_group / 32, k, i - i_group] ...
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from math import ceil, prod

from polyloom.ir.host import HostNode, HostProgram, MdHom, Role, uses
from polyloom.ir.naming import Names
from polyloom.mdh.tree.nodes import (
    ZERO,
    Array,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    Let,
    LetInteger,
    Load,
    Parameter,
    Space,
    Statement,
    Store,
    counted,
)
from polyloom.mdh.tree.ranges import ends
from polyloom.mdh.tree.rewrite import integers_used, loads_of, walk, with_blocks, with_places
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, linear_terms, names_in

MOST_COPIES = 2
"""A packed copy has at most so many times the elements of the array: each of its elements is loaded again."""


def fixed_nodes(program: HostProgram, constants: Collection[str]) -> tuple[list[HostNode], set[str]]:
    """Return the nodes that only constants decide, and all buffers that are constants then.

    Their results are local buffers that no other node writes.
    """
    known, found = set(constants), list[HostNode]()
    local = {b.name for b in program.buffers if b.role is Role.LOCAL}
    written = [name for node in program.body for name in uses((node,)).written]
    for node in program.body:
        of = uses((node,))
        alone = of.written <= local and all(written.count(name) == 1 for name in of.written)
        if isinstance(node, MdHom) and alone and of.read <= known:
            known |= of.written
            found.append(node)
    return found, known


@dataclass(frozen=True)
class Packed:
    """What runs each time, and what runs before, over the same parameters.

    ``names``: of those parameters that are packed copies.
    """

    function: Function
    load: Function
    names: tuple[str, ...]


def packed(function: Function, load: Function, constants: Collection[str]) -> Packed:
    """Take copies of constant parameters out of a function, and fill them in ``load``, behind what it does.

    Arrays of different nodes may have the same name. Keeps true: a copy holds what it held, for it depends
    on constants and iterators alone, and has an element of its own for each value of these.
    """
    views = {r.name: r.parameter for r in function.reshaped}
    own = {p.name for p in function.parameters if p.name in constants}
    own |= {name for name, parameter in views.items() if parameter in constants}
    packing = _Packing(Names(_taken(function) | _taken(load)), own, _elements(function))
    body = packing.code(function.body, ())
    parameters = (*function.parameters, *packing.parameters)
    known = {r.name for r in load.reshaped}
    reshaped = (*load.reshaped, *(r for r in function.reshaped if r.name not in known))
    return Packed(
        replace(function, body=body, parameters=parameters),
        replace(
            load,
            body=(*load.body, *packing.filled),
            reshaped=reshaped,
            parameters=(*load.parameters, *(replace(p, constant=False) for p in packing.parameters)),
        ),
        tuple(p.name for p in packing.parameters),
    )


def _taken(function: Function) -> set[str]:
    names = {*function.arrays, *function.integers}
    for statement in walk(function.body):
        match statement:
            case For(iterator=name) | Let(name=name) | LetInteger(name=name) | Array(name=name):
                names.add(name)
            case _:
                pass
    return names


def _elements(function: Function) -> dict[str, int]:
    """Return how many elements parameters of known sizes have, by all their names."""
    sizes = {}
    for p in function.parameters:
        extents = [n.value for n in p.shape if isinstance(n, Number)]
        if len(extents) == len(p.shape):
            sizes[p.name] = prod(extents)
    return {**sizes, **{r.name: prod(n.value for n in r.shape) for r in function.reshaped}}


@dataclass
class _Packing:
    """Takes copies out of code; ``constants``: names of what they may hold."""

    names: Names
    constants: set[str]
    elements: dict[str, int]
    shapes: dict[str, Parameter] = field(default_factory=dict)
    parameters: list[Parameter] = field(default_factory=list)
    filled: list[Statement] = field(default_factory=list)

    def code(self, code: Code, around: tuple[For, ...]) -> Code:
        found: list[Statement] = []
        rest = list(code)
        while rest:
            statement = rest.pop(0)
            if isinstance(statement, Array):
                fill = tuple(takewhile(partial(_fills, statement.name), rest))
                place = self._place(statement, fill, around)
                if place is not None and not _is_stored(statement.name, rest[len(fill) :]):
                    rest = list(_moved(tuple(rest[len(fill) :]), statement.name, place))
                    self._fill(fill, statement.name, place, around)
                    continue
            inner = (*around, statement) if isinstance(statement, For) else around
            found.append(with_blocks(statement, partial(self.code, around=inner)))
        return tuple(found)

    def _place(self, array: Array, fill: Code, around: Sequence[For]) -> Load | None:
        """Return where the elements of a copy are once it is packed; None where it is not."""
        loops = self._depends(array, fill, around)
        extents = [n.value for n in array.shape if isinstance(n, Number)]
        if loops is None or len(extents) < len(array.shape):
            return None
        counts = [ceil(_bound(loop, around) / _step(loop)) for loop in loops]
        source = sum(self.elements.get(name, 0) for name in {load.array for load in _loads(fill)})
        if prod(counts) * prod(extents) > MOST_COPIES * source:
            return None
        key = array.name, len(self.parameters)
        name = self.names.of(key, f"{array.name.removesuffix('_copy')}_packed")
        shape = (*map(Number, counts), *array.shape)
        self.shapes[name] = Parameter(name=name, type=array.type, shape=shape, constant=True)
        return Load(name, tuple(_divided(Name(loop.iterator), _step(loop)) for loop in loops))

    def _fill(self, fill: Code, array: str, place: Load, around: Sequence[For]) -> None:
        """Let the elements of a packed copy be stored at load."""
        self.parameters.append(self.shapes[place.array])
        body = _moved(fill, array, place)
        names = {name for s in place.subscripts if not isinstance(s, Compute) for name in names_in(s)}
        for loop in reversed([loop for loop in around if loop.iterator in names]):
            end = Number(_bound(loop, around))
            body = (counted(loop.iterator, end, body, step=_step(loop)),)
        self.filled += body

    def _depends(self, array: Array, fill: Code, around: Sequence[For]) -> list[For] | None:
        """Return the loops around that the elements of a copy depend on; None where it is no such copy."""
        inside = list(walk(fill))
        if array.space is not Space.GROUP or array.lanes:
            return None
        if not all(isinstance(s, For | Store | If | LetInteger) for s in inside):
            return None
        if any(isinstance(s, If) and isinstance(s.condition, Compute) for s in inside):
            return None
        stores = [s for s in inside if isinstance(s, Store)]
        loads = list(_loads(fill))
        subscripts = [s for load in loads for s in load.subscripts]
        subscripts += [s for store in stores for s in store.subscripts]
        if not stores or any(s.array != array.name for s in stores) or not loads:
            return None
        if any(isinstance(s, Compute) for s in subscripts) or not {a.array for a in loads} <= self.constants:
            return None
        own = {s.iterator for s in inside if isinstance(s, For)}
        own |= {s.name for s in inside if isinstance(s, LetInteger)}
        free = integers_used(fill) - own
        loops = [loop for loop in around if loop.iterator in free]
        if free != {loop.iterator for loop in loops}:
            return None
        return loops if all(_is_even(loop, around, free) for loop in loops) else None


def _fills(array: str, statement: Statement) -> bool:
    """Return whether a statement is a loop that stores to an array."""
    return isinstance(statement, For) and _is_stored(array, (statement,))


def _is_stored(array: str, code: Iterable[Statement]) -> bool:
    return any(isinstance(s, Store) and s.array == array for s in walk(tuple(code)))


def _moved(code: Code, array: str, place: Load) -> Code:
    """Return code that loads and stores elements of an array at a place with more subscripts in front."""

    def moved(load: Load) -> Load:
        return Load(place.array, (*place.subscripts, *load.subscripts)) if load.array == array else load

    return with_places(code, moved)


def _loads(code: Code) -> Iterator[Load]:
    for statement in walk(code):
        yield from loads_of(statement)


def _step(loop: For) -> int:
    assert isinstance(loop.step, Number)
    return loop.step.value


def _bound(loop: For, around: Sequence[For]) -> int:
    """Return a number that a loop's iterator stays below."""
    return min(_numbers(loop, around))


def _numbers(loop: For, around: Sequence[For]) -> Iterator[int]:
    """Yield numbers that a loop's iterator stays below, as ``i + 8`` where ``i`` is an outer even one."""
    for end in ends(loop):
        terms, constant = linear_terms([(1, end)])
        outer = next((o for o in around if terms == [(1, Name(o.iterator))]), None)
        if not terms:
            yield constant
        elif outer is not None and loop.start == Name(outer.iterator) and _is_even(outer, around, ()):
            yield (ceil(_bound(outer, around) / _step(outer)) - 1) * _step(outer) + constant


def _is_even(loop: For, around: Sequence[For], free: Collection[str]) -> bool:
    """Return whether a loop's iterator is a multiple of its step, from 0 to before a number.

    It may begin where an outer one is, in larger steps, unless the copy depends on both.
    """
    if loop.kind not in (Kind.GROUP, Kind.SEQUENTIAL) or not isinstance(loop.step, Number):
        return False
    try:
        numbers = list(_numbers(loop, around))
    except ValueError:
        return False
    if loop.step.value < 1 or not numbers:
        return False
    others = (names_in(loop.start) | names_in(loop.condition)) - {loop.iterator}
    if others & set(free):
        return False
    return loop.start == ZERO or any(
        loop.start == Name(outer.iterator)
        and _is_even(outer, around, ())
        and isinstance(outer.step, Number)
        and outer.step.value % loop.step.value == 0
        for outer in around
    )


def _divided(a: IntExpression, by: int) -> IntExpression:
    return a if by == 1 else Operation("/", (a, Number(by)))
