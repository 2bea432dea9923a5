"""Loops that read what they stored some steps before: as many points at a time, in registers.

    for i from lo to hi:                        t[l] = a[lo - 7 + l]                        for l < 7
      a[i] = f(a[i - 7], b[i])           ->     for i from lo to hi - 6 step 7:
                                                  t[l] = f(t[l], b[i + l]);  a[i + l] = t[l]
                                                for the rest of i: as before

Seven lanes are vectors of four, two and one. A C compiler makes vectors of four of such a loop, but loads
each across two that it has just stored, for which the processor waits until both are in the cache: four to
six times as long. Each value is computed as before, to the bit.

Not in the papers; unrolling by the distance of a dependence is (Callahan, Carr, Kennedy 1990).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from polyloom.ir.expressions import Read, walk
from polyloom.ir.naming import Names
from polyloom.mdh.lowering.nests.linear_recurrences import has_end, integers_of, steps_back
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    LetInteger,
    Load,
    Space,
    Statement,
    Store,
    counted,
)
from polyloom.mdh.tree.ranges import plus, times
from polyloom.mdh.tree.rewrite import declared_in, rewritten, with_integers
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, replace_name

MOST_VECTORS = 12
"""Vectors that stay in registers."""


def carried_vectors(function: Function, vector_bytes: int) -> Function:
    """Return a function whose loops carry what they stored some steps before in vectors of so many bytes.

    Keeps true: each instance once, in an order in which each reads what it did; the same values.
    """
    names = Names({*function.arrays, *function.integers, *declared_in(function.body)})
    alone = {p.name for p in function.parameters if p.alone} - {r.parameter for r in function.reshaped}
    maker = _Maker(names, frozenset(alone), vector_bytes)
    return replace(function, body=rewritten(function.body, maker.statement))


@dataclass(frozen=True)
class _Maker:
    names: Names
    alone: frozenset[str]
    vector_bytes: int

    def statement(self, statement: Statement) -> Code:
        """Return what stands for a statement."""
        match statement:
            case For(kind=Kind.SEQUENTIAL, step=Number(value=1), body=(Store() as store,)) if (
                store.array in self.alone and has_end(statement)
            ):
                pass
            case _:
                return (statement,)
        back = steps_back(statement.iterator, store)
        if not back or len(set(back.values())) != 1:
            return (statement,)
        steps = next(iter(back.values()))
        kinds = [part.type for part in walk(store.value.expression)]
        lanes = self.vector_bytes // max(kind.size for kind in kinds)
        widths = tuple(_widths(steps, lanes))
        if steps < 2 or lanes < 2 or len(widths) > MOST_VECTORS:
            return (statement,)
        return _Carried(statement, store, frozenset(back), steps, widths, self.names).code()


def _widths(count: int, lanes: int) -> Iterator[int]:
    """Yield the lanes of vectors, wide ones first, that have so many together."""
    while count:
        lanes = min(lanes, 1 << count.bit_length() - 1)
        yield lanes
        count -= lanes


class _Carried:
    """The code of a loop whose store loads at positions ``back`` what it stored ``steps`` before."""

    def __init__(
        self,
        loop: For,
        store: Store,
        back: frozenset[int],
        steps: int,
        widths: tuple[int, ...],
        names: Names,
    ) -> None:
        self.loop, self.store, self.back, self.steps, self.widths = loop, store, back, steps, widths

        def name(wanted: str) -> str:
            return names.of((object(),), wanted)

        self.vectors = [name(f"carried{k}") for k in range(len(widths))]
        self.first, self.lane, self.rest = map(name, ("block", "lane", "rest"))

    def code(self) -> Code:
        """Return the loop in blocks, and the loop over the rest."""
        loop = self.loop
        count = plus(loop.end, loop.start, -1)
        whole = Operation(">=", (count, Number(2 * self.steps)))
        blocks = Operation("/", (count, Number(self.steps)))
        rest = LetInteger(self.rest, plus(loop.start, times(self.steps, blocks)))
        tail = replace(loop, start=Name(self.rest))
        return (If(whole, (*self._begin(), rest, self._loop(), tail), (loop,)),)

    def _begin(self) -> Code:
        position = min(self.back)
        before = self.store.value.loads[position]
        code: list[Statement] = []
        for name, at, width in self._parts():
            kind = self.store.value.type
            shape = (Number(width),) if width > 1 else ()
            code.append(Array(name=name, type=kind, shape=shape, space=Space.REGISTER))
            value = Compute(Read(0, kind), (self._placed(before, self.loop.start, at, width),))
            code.append(self._lanes(Store(name, self._own(width), value), width))
        return tuple(code)

    def _parts(self) -> Iterator[tuple[str, int, int]]:
        """Yield each vector, at which point of a block it begins, and how many it has."""
        at = 0
        for name, width in zip(self.vectors, self.widths, strict=True):
            yield name, at, width
            at += width

    def _own(self, width: int) -> tuple[IntExpression, ...]:
        return (Name(self.lane),) if width > 1 else ()

    def _placed(self, load: Load, first: IntExpression, at: int, width: int) -> Load:
        here = self._here(first, at, width)
        places = (replace_name(s, self.loop.iterator, here) for s in integers_of(load.subscripts))
        return Load(load.array, tuple(places))

    def _here(self, first: IntExpression, at: int, width: int) -> IntExpression:
        return plus(plus(first, Name(self.lane)) if width > 1 else first, at)

    def _loop(self) -> For:
        end = Operation("<", (Name(self.first), Name(self.rest)))
        body = (statement for part in self._parts() for statement in self._vector(*part))
        return For(
            iterator=self.first,
            start=self.loop.start,
            condition=end,
            step=Number(self.steps),
            body=tuple(body),
        )

    def _vector(self, name: str, at: int, width: int) -> Code:
        """Return what computes a vector anew from itself, and stores it."""
        value, kind = self.store.value, self.store.value.type
        carried = Load(name, self._own(width))
        loads = tuple(carried if p in self.back else load for p, load in enumerate(value.loads))
        given = Store(name, carried.subscripts, replace(value, loads=loads))
        stored = replace(self.store, value=Compute(Read(0, kind), (carried,)))
        here = self._here(Name(self.first), at, width)

        def placed(store: Store) -> Statement:
            return with_integers(store, lambda e: replace_name(e, self.loop.iterator, here))

        return tuple(self._lanes(placed(store), width) for store in (given, stored))

    def _lanes(self, statement: Statement, width: int) -> Statement:
        if width == 1:
            return statement
        return counted(self.lane, Number(width), (statement,), kind=Kind.VECTOR)
