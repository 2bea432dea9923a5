"""The meaning of a kernel tree: element by element, as Python text that is compiled once.

    for v0 in order(range((0), v9, (1))):
        v1 = poison
        for v2 in range((0), (6), (1)):
            v1 = (v1 + (a0[e0(v0, v2)] * a1[e1(v2)]))
        a2[e2(v0)] = v1

Loops of all kinds run as sequential ones, but the items of a group wait for each other at barriers. What a
printer may do besides can be had too: points of parallel loops in another order, and vector loops statement
by statement. A correct tree leaves the same; that it is correct, ``verify`` proves.

Arrays start as numbers that no program would compute by chance; every access is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.python_text import Known, Leaves, integer_text
from polyloom.ir.evaluation.uninitialised import garbage
from polyloom.ir.integers import integer
from polyloom.ir.types import ElementType
from polyloom.mdh.tree.nodes import (
    Array,
    Barrier,
    Code,
    Compute,
    Condition,
    For,
    Function,
    If,
    Kind,
    Let,
    LetInteger,
    Load,
    Mark,
    Statement,
    Store,
    Subscript,
    While,
)
from polyloom.mdh.tree.rewrite import walk
from polyloom.polyhedra.loops.tree import IntExpression, Number, names_in

NDArray = npt.NDArray[Any]
Order = Callable[[range], Sequence[int]]
"""The order of the points of a parallel loop."""

MOST_BLOCKS = 16
"""Loops inside loops of one Python function; Python has room for 20."""


class BadBarrier(Exception):
    """Some items of a group wait at a barrier that others never reach."""


def in_order(points: range) -> Sequence[int]:
    """Return points as they come."""
    return points


def backwards(points: range) -> Sequence[int]:
    """Return points from the last to the first."""
    return points[::-1]


def shuffled(seed: int) -> Order:
    """Return an order that is different in each loop, and the same in each run."""
    generator = Random(seed)
    return lambda points: generator.sample(points, len(points))


def evaluate(
    function: Function,
    arrays: Mapping[str, NDArray],
    integers: Mapping[str, int],
    *,
    order: Order = in_order,
    together: bool = False,
) -> dict[str, NDArray]:
    """Return what a function leaves in the arrays that it may write, by name; ``arrays`` stay as they are.

    Parameters that are not among ``arrays`` start as garbage. ``order``: of the points of group, item and
    matrix loops. ``together``: the lanes of vector loops statement by statement.

    Errors: IndexError where an element does not exist; BadBarrier.
    """
    found = {p.name: _given(arrays, p.name, _shape(p.shape, integers), p.type) for p in function.parameters}
    for r in function.reshaped:
        found[r.name] = found[r.parameter].reshape(_shape(r.shape, integers))
    with np.errstate(all="ignore"):
        compiled(function, together)(found, integers, order)
    return {p.name: found[p.name] for p in function.parameters if not p.constant and not p.scratch}


def _given(arrays: Mapping[str, NDArray], name: str, shape: tuple[int, ...], kind: ElementType) -> NDArray:
    if name not in arrays:
        return garbage(shape, kind)
    return np.array(arrays[name], dtype=kind.dtype, order="C").reshape(shape)


def _shape(extents: Sequence[IntExpression], integers: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(max(0, integer(n, integers)) for n in extents)


Compiled = Callable[[Mapping[str, NDArray], Mapping[str, int], Order], None]


def compiled(function: Function, together: bool = False) -> Compiled:
    """Return a function of arrays, which change, integers, and the order of parallel points."""
    writer = _Writer(together)
    text = "\n".join(writer.function(function))
    found = {**writer.known.names, **_CALLED}
    exec(compile(text, f"<{function.name}>", "exec"), found)
    run: Compiled = found["run"]
    return run


def _element(name: str, array: NDArray) -> Callable[..., tuple[int, ...]]:
    """Return a function from subscripts to a place in an array, which is in it."""
    shape = array.shape

    def place(*subscripts: int) -> tuple[int, ...]:
        for k, n in zip(subscripts, shape, strict=True):
            if not 0 <= k < n:
                raise IndexError(f"{name} has no element {list(map(int, subscripts))}; it has {list(shape)}")
        return subscripts

    return place


def _array(shape: tuple[int, ...], kind: ElementType) -> NDArray:
    return garbage(tuple(max(0, n) for n in shape), kind)


def _together(items: Sequence[Iterator[None]]) -> Iterator[None]:
    """Run items of a group from barrier to barrier; yield at each, for items around them."""
    while True:
        waiting = [next(item, "done") for item in items]
        if all(state == "done" for state in waiting):
            return
        if any(state == "done" for state in waiting):
            raise BadBarrier(f"{waiting.count(None)} of {len(items)} items wait at a barrier")
        yield


def _finished(items: Iterator[None]) -> None:
    for _ in items:
        pass


_CALLED = {"element": _element, "array": _array, "together": _together, "finished": _finished}


@dataclass(frozen=True)
class _Scope:
    """What names of the tree are in the text: integers, arrays (with their places), scalars.

    ``blocks``: loops of this Python function around; ``waits``: whether it is an item that may wait.
    """

    integers: Mapping[str, str] = field(default_factory=dict)
    arrays: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, str] = field(default_factory=dict)
    blocks: int = 0
    waits: bool = False

    def with_integer(self, name: str, variable: str) -> _Scope:
        return replace(self, integers={**self.integers, name: variable})

    def with_array(self, name: str, variable: str) -> _Scope:
        scalars = {n: v for n, v in self.scalars.items() if n != name}
        return replace(self, arrays={**self.arrays, name: variable}, scalars=scalars)

    def with_scalar(self, name: str, variable: str) -> _Scope:
        return replace(self, scalars={**self.scalars, name: variable})


Text = Generator[str, None, _Scope]
"""Lines, and the scope of what follows in the block."""


class _Writer:
    """Writes the text; every name of the tree gets a variable of its own."""

    def __init__(self, together: bool) -> None:
        self.together = together
        self.known = Known()
        self.numbers = count()

    def variable(self) -> str:
        return f"v{next(self.numbers)}"

    def function(self, function: Function) -> Iterator[str]:
        scope = _Scope()
        yield "def run(arrays, integers, order):"
        for name in function.integers:
            scope = scope.with_integer(name, self.variable())
            yield f" {scope.integers[name]} = integers[{name!r}]"
        for name in function.arrays:
            scope = scope.with_array(name, self.variable())
            yield from _indented(self.opened(name, f"arrays[{name!r}]", scope))
        yield from _indented(self.code(function.body, scope))

    def opened(self, name: str, value: str, scope: _Scope) -> Iterator[str]:
        """Yield the lines that make an array known."""
        variable = scope.arrays[name]
        yield f"{variable} = {value}"
        yield f"{variable}e = element({name!r}, {variable})"

    def code(self, code: Code, scope: _Scope) -> Iterator[str]:
        for statement in code:
            scope = yield from self.statement(statement, scope)
        yield "pass"

    def statement(self, statement: Statement, scope: _Scope) -> Text:
        """Yield a statement; what follows in its block is in the scope that is returned."""
        match statement:
            case For():
                yield from self.loop(statement, scope)
            case If(condition=condition, body=body, otherwise=otherwise):
                yield f"if {self.condition(condition, scope)}:"
                yield from _indented(self.code(body, scope))
                yield "else:"
                yield from _indented(self.code(otherwise, scope))
            case While(condition=asked, body=body):
                yield f"while {self.condition(asked, scope)}:"
                yield from _indented(self.code(body, replace(scope, blocks=scope.blocks + 1)))
            case Let(name=name, value=value):
                return (yield from self.scalar(name, self.compute(value, scope), scope))
            case LetInteger(name=name, value=number):
                variable = self.variable()
                yield f"{variable} = {self.integer(number, scope)}"
                return scope.with_integer(name, variable)
            case Array():
                return (yield from self.array(statement, scope))
            case Store():
                yield from self.store(statement, scope)
            case Barrier():
                yield "yield" if scope.waits else "pass"
            case Mark():
                yield "pass"
        return scope

    def scalar(self, name: str, value: str, scope: _Scope) -> Text:
        variable = self.variable()
        yield f"{variable} = {value}"
        return scope.with_scalar(name, variable)

    def array(self, array: Array, scope: _Scope) -> Text:
        if not array.shape:
            nothing = self.known.object(garbage((), array.type)[()])
            return (yield from self.scalar(array.name, nothing, scope))
        extents = "".join(f"{self.integer(n, scope)}, " for n in array.shape)
        kind = self.known.object(array.type)
        inner = scope.with_array(array.name, self.variable())
        yield from self.opened(array.name, f"array(({extents}), {kind})", inner)
        return inner

    def store(self, store: Store, scope: _Scope) -> Iterator[str]:
        value = self.compute(store.value, scope)
        if store.array in scope.scalars:
            yield f"{scope.scalars[store.array]} = {value}"
        else:
            yield f"{scope.arrays[store.array]}[{self.place(store.array, store.subscripts, scope)}] = {value}"

    # -- loops

    def loop(self, loop: For, scope: _Scope) -> Iterator[str]:
        if loop.kind is Kind.VECTOR and self.together and _is_straight(loop.body):
            yield from self.lanes(loop, scope)
        elif loop.kind is Kind.ITEM and any(isinstance(s, Barrier) for s in walk(loop.body)):
            yield from self.items(loop, scope)
        elif scope.blocks >= MOST_BLOCKS:
            yield from self.apart(loop, scope)
        else:
            yield from self.plain(loop, scope)

    def plain(self, loop: For, scope: _Scope) -> Iterator[str]:
        variable = self.variable()
        inner = replace(scope.with_integer(loop.iterator, variable), blocks=scope.blocks + 1)
        if _is_counted(loop):
            yield f"for {variable} in {self.points(loop, scope)}:"
            yield from _indented(self.code(loop.body, inner))
            return
        yield f"{variable} = {self.integer(loop.start, scope)}"
        yield f"while {self.integer(loop.condition, inner)}:"
        yield from _indented(self.code(loop.body, inner))
        yield f" {variable} += {self.integer(loop.step, inner)}"

    def points(self, loop: For, scope: _Scope) -> str:
        bounds = ", ".join(self.integer(e, scope) for e in (loop.start, loop.end, loop.step))
        return f"order(range({bounds}))" if loop.kind in _PARALLEL else f"range({bounds})"

    def apart(self, loop: For, scope: _Scope) -> Iterator[str]:
        """Write a loop as a function of its own, for Python's limit on loops inside loops."""
        name = self.variable()
        yield from self.defined(name, "", self.plain(loop, replace(scope, blocks=0)), scope)
        yield f"yield from {name}()" if scope.waits else f"{name}()"

    def items(self, loop: For, scope: _Scope) -> Iterator[str]:
        """Write a loop whose points wait for each other: each is a generator that yields at barriers."""
        name, variable = self.variable(), self.variable()
        inner = replace(scope.with_integer(loop.iterator, variable), blocks=0, waits=True)
        yield from self.defined(name, variable, self.code(loop.body, inner), inner)
        waiting = f"together([{name}(p) for p in {self.points(loop, scope)}])"
        yield f"yield from {waiting}" if scope.waits else f"finished({waiting})"

    def defined(self, name: str, parameters: str, body: Iterator[str], scope: _Scope) -> Iterator[str]:
        yield f"def {name}({parameters}):"
        if scope.scalars:
            yield f" nonlocal {', '.join(dict.fromkeys(scope.scalars.values()))}"
        yield " if 0: yield" if scope.waits else " pass"
        yield from _indented(body)

    # -- lanes of vectors, statement by statement

    def lanes(self, loop: For, scope: _Scope) -> Iterator[str]:
        lane = self.variable()
        points = f"for {lane} in order(range({self.integer(loop.end, scope)}))"
        yield from self.masked(loop.body, scope.with_integer(loop.iterator, lane), _Lanes(lane, points))

    def masked(self, code: Code, scope: _Scope, lanes: _Lanes) -> Iterator[str]:
        for statement in code:
            found = self.variable()
            match statement:
                case Let(name=name, value=value):
                    yield lanes.each(found, self.compute(value, scope))
                    scope = scope.with_scalar(name, f"{found}[{lanes.lane}]")
                case LetInteger(name=name, value=number):
                    yield lanes.each(found, self.integer(number, scope))
                    scope = scope.with_integer(name, f"{found}[{lanes.lane}]")
                case If(condition=condition, body=body, otherwise=otherwise):
                    yield lanes.each(found, self.condition(condition, scope))
                    yield from self.masked(body, scope, lanes.where(f"{found}[{lanes.lane}]"))
                    yield from self.masked(otherwise, scope, lanes.where(f"not {found}[{lanes.lane}]"))
                case Store():
                    yield from self.stored(statement, scope, lanes, found)
                case _:
                    raise AssertionError(statement)

    def stored(self, store: Store, scope: _Scope, lanes: _Lanes, found: str) -> Iterator[str]:
        value = self.compute(store.value, scope)
        if store.array in scope.scalars:
            yield lanes.each(found, value)
            yield f"for {lanes.lane} in {found}: {scope.scalars[store.array]} = {found}[{lanes.lane}]"
        else:
            place = self.place(store.array, store.subscripts, scope)
            yield lanes.each(found, f"({place}, {value})")
            yield f"for p, x in {found}.values(): {scope.arrays[store.array]}[p] = x"

    # -- values

    def integer(self, expression: IntExpression, scope: _Scope) -> str:
        return integer_text(expression, scope.integers.__getitem__)

    def condition(self, condition: Condition, scope: _Scope) -> str:
        if isinstance(condition, Compute):
            return self.compute(condition, scope)
        return self.integer(condition, scope)

    def compute(self, value: Compute, scope: _Scope) -> str:
        leaves = Leaves(
            lambda k: self.load(value.loads[k], scope),
            lambda d: self.integer(value.iterators[d], scope),
            scope.integers.__getitem__,
        )
        return self.known.value(value.expression, leaves)

    def load(self, load: Load, scope: _Scope) -> str:
        if load.array in scope.scalars:
            return scope.scalars[load.array]
        return f"{scope.arrays[load.array]}[{self.place(load.array, load.subscripts, scope)}]"

    def place(self, array: str, subscripts: Sequence[Subscript], scope: _Scope) -> str:
        return f"{scope.arrays[array]}e({', '.join(self.subscript(s, scope) for s in subscripts)})"

    def subscript(self, subscript: Subscript, scope: _Scope) -> str:
        if isinstance(subscript, Compute):
            return f"int({self.compute(subscript, scope)})"
        return self.integer(subscript, scope)


@dataclass(frozen=True)
class _Lanes:
    """The lanes of a vector loop for which ``masks`` hold."""

    lane: str
    points: str
    masks: tuple[str, ...] = ()

    def where(self, mask: str) -> _Lanes:
        return replace(self, masks=(*self.masks, mask))

    def each(self, variable: str, value: str) -> str:
        """Return the line that works out a value for each lane."""
        masks = "".join(f" if {mask}" for mask in self.masks)
        return f"{variable} = {{{self.lane}: {value} {self.points}{masks}}}"


_PARALLEL = (Kind.GROUP, Kind.ITEM, Kind.MATRIX)


def _is_counted(loop: For) -> bool:
    """Whether the points are known before the first one is carried out."""
    try:
        return (
            isinstance(loop.step, Number) and loop.step.value > 0 and loop.iterator not in names_in(loop.end)
        )
    except ValueError:
        return False


def _is_straight(code: Code) -> bool:
    return all(
        isinstance(s, Let | LetInteger | Store)
        or (isinstance(s, If) and _is_straight(s.body) and _is_straight(s.otherwise))
        for s in code
    )


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f" {line}" for line in lines)
