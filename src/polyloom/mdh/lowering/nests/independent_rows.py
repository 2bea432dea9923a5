"""Rows of parallel points that store under conditions on data, as loops that become masked vectors.

    parallel for i from 0 to n:                  parallel for i from 0 to n:
      parallel for j from 0 to k:                  if 0 < k:
        if a[i, k] + a[k, j] < a[i, j]:    ->        kept = a[i, k]
          a[i, j] = a[i, k] + a[k, j]                independent for j from 0 to k:
                                                       if kept + a[k, j] < a[i, j]:
                                                         a[i, j] = kept + a[k, j]

A C compiler does not know that points are independent, and loads what may be an element of another point
again after each store. No point of a parallel loop stores what another one loads, so an element that all
points load is loaded before the first, where it exists. What a point has looked at it stores back where its
condition does not hold.

Source: Allen, Kennedy, Optimizing Compilers for Modern Architectures, 2001, Sec. 7.2 (masked vectors).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import takewhile

from polyloom.ir.expressions import Binary, BinaryOp, Expression, Read, Select, children
from polyloom.ir.naming import Names
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.nests.invariant_branches import in_branches, sharing
from polyloom.mdh.tree.nodes import (
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
    Statement,
    Store,
)
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.rewrite import declared_in, loads_of, walk, with_places
from polyloom.mdh.tree.trips import is_parallel, nested_groups, stores_where_asked, trip_count
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.polyhedra.loops.accesses import NotKnown, outside, question
from polyloom.polyhedra.loops.scope import Scope
from polyloom.polyhedra.loops.tree import Number, names_in, replace_name

ROWS = 16
"""Rows for each thread from which on a row is no longer shared. Estimate."""

EFFORT = 2_000_000
"""What isl may spend on which elements of a function exist: half a second."""

QUESTION = 200_000
"""The same of one element."""


def independent_rows(function: Function, threads: int) -> Function:
    """Return a function whose innermost parallel loops with stores under conditions are rows of their own.

    Keeps true: each instance once, and what it computes: nothing is loaded that may not exist.
    """
    if not any(isinstance(s, If) and isinstance(s.condition, Compute) for s in walk(function.body)):
        return function
    scope = Scope.of_names(function.integers)
    try:
        with at_most(EFFORT, "which elements exist"):
            scope = scope if function.context is None else scope.where(function.context)
            body = _Rows(function, threads).code(function.body, scope)
    except (TooHardError, NotKnown, KeyError):
        return function
    return replace(function, body=body)


class _Rows:
    def __init__(self, function: Function, threads: int) -> None:
        self.threads = threads
        self.names = Names({*function.arrays, *function.integers, *declared_in(function.body)})
        self.parameters = {p.name: p for p in function.parameters}
        self.sharing = sharing(function)

    def code(self, code: Code, scope: Scope) -> Code:
        found: list[Statement] = []
        for statement in code:
            found.append(self._statement(statement, scope))
            if isinstance(statement, LetInteger):
                scope = scope.with_value(statement.name, statement.value)
        return tuple(found)

    def _statement(self, statement: Statement, scope: Scope) -> Statement:
        match statement:
            case For(kind=Kind.GROUP):
                return self._group(statement, scope)
            case For() if any(map(is_parallel, statement.body)):
                return replace(statement, body=self.code(statement.body, _inside(scope, statement)))
            case If(condition=condition) if not isinstance(condition, Compute) and is_parallel(statement):
                body = self.code(statement.body, scope.where(condition))
                return replace(
                    statement,
                    body=body,
                    otherwise=self.code(statement.otherwise, scope.where(condition, holds=False)),
                )
            case _:
                return statement

    def _group(self, loop: For, scope: Scope) -> Statement:
        *outer, row = nested_groups(loop)
        if not (stores_where_asked(row) and _moves(row) and self._is_alone(outer)):
            return loop
        for each in outer:
            scope = _inside(scope, each)
        whole = in_branches(replace(row, kind=Kind.INDEPENDENT), self.sharing)
        made: Statement = whole[0] if isinstance(whole[0], If) else self._row(row, scope)
        for each in reversed(outer):
            made = replace(each, body=(made,))
        return made

    def _is_alone(self, outer: Sequence[For]) -> bool:
        """Whether threads have rows enough, so that none has to be shared."""
        counts = [trip_count(each) for each in outer]
        known = [count.value for count in counts if isinstance(count, Number)]
        if self.threads == 1 or len(known) < len(counts):
            return True
        rows = 1
        for count in known:
            rows *= count
        return rows >= ROWS * self.threads

    def _row(self, row: For, scope: Scope) -> If:
        """Return a row of two points or more, whose loads from what it stores to stand before it."""
        assert isinstance(row.step, Number)
        second = replace_name(row.condition, row.iterator, plus(row.start, row.step.value))
        kept: dict[Load, Let] = {}
        for load, kind in self._same_for_all(row):
            if load not in kept and self._exists(load, scope.where(second)):
                name = self.names.of((object(),), f"{load.array}_kept")
                kept[load] = Let(name, Compute(Read(0, kind), (load,)))
        body = with_places(self._stored_back(row.body), lambda load: _named(load, kept))
        alone = replace(row, kind=Kind.SEQUENTIAL)
        return If(second, (*kept.values(), replace(row, kind=Kind.INDEPENDENT, body=body)), (alone,))

    def _stored_back(self, code: Code) -> Code:
        """Return code that stores what an element holds where its condition does not hold.

        Only elements that the point has looked at before, whatever data are: these exist, and nobody else may
        write them at that time.
        """
        found: list[Statement] = []
        seen: set[Load] = set()
        for statement in code:
            if isinstance(statement, If) and isinstance(statement.condition, Compute):
                seen |= set(_surely_loaded(statement.condition))
                found += self._chosen(statement, seen)
            else:
                found.append(statement)
            if isinstance(statement, Store):
                seen |= set(_surely_loaded(statement.value))
        return tuple(found)

    def _chosen(self, branch: If, seen: AbstractSet[Load]) -> Code:
        """Return a branch whose first stores are choices, as far as these are to elements of ``seen``."""
        assert isinstance(branch.condition, Compute)
        stores = list(takewhile(lambda s: isinstance(s, Store) and _place(s) in seen, branch.body))
        if branch.otherwise or not stores:
            return (branch,)
        asked = Let(self.names.of((object(),), "asked"), branch.condition)
        chosen = [_choice(asked, s) for s in stores if isinstance(s, Store)]
        rest = branch.body[len(stores) :]
        condition = Compute(Read(0, asked.value.type), (Load(asked.name),))
        return (asked, *chosen, *([If(condition, rest)] if rest else []))

    def _same_for_all(self, row: For) -> Iterator[tuple[Load, ElementType]]:
        """Yield what all points load of arrays to which they store, with its type."""
        stored = {s.array for s in walk(row.body) if isinstance(s, Store)} & self.parameters.keys()
        changing = {row.iterator, *(s.name for s in walk(row.body) if isinstance(s, LetInteger))}
        for statement in walk(row.body):
            for load in loads_of(statement):
                integers = [s for s in load.subscripts if not isinstance(s, Compute)]
                if load.array not in stored or len(integers) < len(load.subscripts):
                    continue
                if not any(names_in(s) & changing for s in integers):
                    yield load, self.parameters[load.array].type

    def _exists(self, load: Load, scope: Scope) -> bool:
        try:
            with question(f"whether `{load.array}` has an element", QUESTION):
                shape = self.parameters[load.array].shape
                integers = [s for s in load.subscripts if not isinstance(s, Compute)]
                return outside(scope, load.array, integers, shape) is None
        except NotKnown:
            return False


def _named(load: Load, kept: Mapping[Load, Let]) -> Load:
    return Load(kept[load].name) if load in kept else load


def _place(store: Statement) -> Load:
    assert isinstance(store, Store)
    return Load(store.array, store.subscripts)


def _choice(asked: Let, store: Store) -> Store:
    """Return the store of a value where ``asked`` is true, and else of what is there."""
    count, kind = len(store.value.loads), store.value.type
    condition = Read(count, asked.value.type)
    value = Select(condition, store.value.expression, Read(count + 1, kind))
    loads = (*store.value.loads, Load(asked.name), _place(store))
    return replace(store, value=Compute(value, loads, store.value.iterators))


def _surely_loaded(value: Compute) -> Iterator[Load]:
    """Yield what a scalar function loads whatever its conditions are."""

    def inside(expression: Expression) -> Iterator[Load]:
        match expression:
            case Read(position=k):
                yield value.loads[k]
            case Select(condition=condition):
                yield from inside(condition)
            case Binary(op=BinaryOp.AND | BinaryOp.OR, left=left):
                yield from inside(left)
            case _:
                for child in children(expression):
                    yield from inside(child)

    return inside(value.expression)


def _moves(row: For) -> bool:
    """Return whether each store of a row is to another element at each point."""
    own = {s.name for s in walk(row.body) if isinstance(s, Array)}
    stores = [s for s in walk(row.body) if isinstance(s, Store) and s.array not in own]
    places = ([i for i in s.subscripts if not isinstance(i, Compute)] for s in stores)
    return all(any(row.iterator in names_in(i) for i in integers) for integers in places)


def _inside(scope: Scope, loop: For) -> Scope:
    return scope.inside(loop.iterator, loop.start, loop.condition, loop.step)
