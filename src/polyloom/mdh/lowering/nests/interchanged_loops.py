"""Parallel loops go inside the sequential loops in them, in blocks, where neighbours in memory meet there.

    parallel for k from 0 to n:               parallel for k_block from 0 to n step B:
      float64 sum in registers                  float64 sum[B] on the stack
      sum = a[0, k]                             for k from k_block to min(n, k_block + B):
      for j from 0 to m:                 ->       sum[k - k_block] = a[0, k]
        sum = sum + b[j, k]                     for j from 0 to m:
        a[j + 1, k] = sum                         for k from k_block to min(n, k_block + B):
                                                    sum[k - k_block] = sum[k - k_block] + b[j, k]
                                                    a[j + 1, k] = sum[k - k_block]

Points of a parallel loop are independent, so any order of theirs is right: the loop is distributed over the
statements in it and interchanged with those loops whose bounds are the same for all of its points. Scalars
that live across a loop get an element for each point of a block (scalar expansion).

Source: Allen, Kennedy, Optimizing Compilers for Modern Architectures, 2001, Sec. 5.2 and 5.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from polyloom.ir.naming import Names
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    Load,
    Space,
    Statement,
    Store,
)
from polyloom.mdh.tree.ranges import least, linear_in, plus
from polyloom.mdh.tree.rewrite import (
    arrays_used,
    blocks,
    declared_in,
    loads_of,
    walk,
    with_blocks,
    with_places,
)
from polyloom.mdh.tree.trips import is_parallel, trip_count
from polyloom.polyhedra.loops.tree import Name, Number, Operation, names_in, replace_name

BLOCK_BYTES = 16384
"""Bytes of an expanded scalar at most: it stays in the cache next to the processor."""

LEAST_POINTS = 16
"""Points from which on a parallel loop is worth its start in each iteration of another one. Estimate."""

BLOCKS = 4
"""Blocks for each thread where no other parallel loop is around."""


def interchanged_loops(function: Function, threads: int) -> Function:
    """Return a function whose parallel loops go along neighbours in memory where inner loops jump over them.

    Keeps true: each instance once, what it computes, and the order of the instances of one point.
    """
    names = Names({*function.arrays, *function.integers, *declared_in(function.body)})
    body = tuple(_changed(s, names, threads, shared=False) for s in function.body)
    return replace(function, body=body)


def _changed(statement: Statement, names: Names, threads: int, *, shared: bool) -> Statement:
    """``shared``: whether threads share the points of a loop around it."""
    if isinstance(statement, For) and statement.kind is Kind.GROUP:
        if not any(map(is_parallel, statement.body)):
            least_blocks = 1 if shared or threads == 1 else BLOCKS * threads
            return _Interchange.of(statement, names, least_blocks) or statement
        shared = True
    return with_blocks(
        statement, lambda block: tuple(_changed(s, names, threads, shared=shared) for s in block)
    )


@dataclass(frozen=True)
class _Interchange:
    """A parallel loop without others inside, and the block of its points that each inner loop goes through.

    ``block``: the iterator over blocks. ``expanded``: scalars that get an element for each point of a block.
    """

    loop: For
    block: str
    width: int
    expanded: Mapping[str, Array]

    @staticmethod
    def of(loop: For, names: Names, least_blocks: int) -> For | None:
        """Return the loop in ``least_blocks`` or more around its inner ones, or None."""
        arrays = {s.name: s for s in walk(loop.body) if isinstance(s, Array)}
        if loop.step != Number(1) or not _is_plain(loop.body, arrays) or not _is_worth_it(loop, arrays):
            return None
        crossing = _crossing(loop.body, loop.iterator, arrays)
        width = BLOCK_BYTES // max((a.type.size for a in arrays.values()), default=8)
        points = trip_count(loop)
        if isinstance(points, Number):
            if points.value < LEAST_POINTS:
                return None
            number = max(least_blocks, -(-points.value // width))
            width = _in_lines(-(-points.value // number))
        block = names.of((object(),), f"{loop.iterator}_block")
        return _Interchange(loop, block, width, {n: arrays[n] for n in crossing}).code()

    def code(self) -> For:
        """Return the loop over blocks."""
        arrays = tuple(
            replace(a, shape=(Number(self.width),), space=Space.PRIVATE) for a in self.expanded.values()
        )
        whole = replace(self.loop, iterator=self.block, step=Number(self.width))
        condition = replace_name(self.loop.condition, self.loop.iterator, Name(self.block))
        return replace(whole, condition=condition, body=(*arrays, *self._inside(self.loop.body)))

    def _inside(self, code: Code) -> Code:
        """Return code for all points of a block, loops that all of them share outside."""
        found: list[Statement] = []
        for together, run in groupby(code, lambda s: not _is_shared(s, self.loop.iterator)):
            statements = tuple(run)
            found += [self._points(statements)] if together and _does_anything(statements) else ()
            found += () if together else (with_blocks(s, self._inside) for s in statements)
        return tuple(found)

    def _points(self, code: Code) -> For:
        """Return a loop over the points of a block; scalars of its own are declared in it."""
        used = arrays_used(code)
        own = (a for a in walk(self.loop.body) if isinstance(a, Array) and a.name not in self.expanded)
        rest = tuple(s for s in code if not isinstance(s, Array))
        end = least((self.loop.end, plus(Name(self.block), self.width)))
        below = Operation("<", (Name(self.loop.iterator), end))
        body = (*(a for a in own if a.name in used), *with_places(rest, self._element))
        return replace(self.loop, start=Name(self.block), condition=below, kind=Kind.SEQUENTIAL, body=body)

    def _element(self, load: Load) -> Load:
        if load.array not in self.expanded:
            return load
        return Load(load.array, (plus(Name(self.loop.iterator), Name(self.block), -1),))


def _in_lines(points: int) -> int:
    return -(-points // LEAST_POINTS) * LEAST_POINTS


def _does_anything(code: Code) -> bool:
    return any(not isinstance(s, Array) for s in code)


def _is_shared(statement: Statement, iterator: str) -> bool:
    """Return whether a loop, or a branch around one, is the same at all points of the parallel loop."""
    match statement:
        case For(start=start, condition=condition, step=step):
            return not any(iterator in names_in(e) for e in (start, condition, step))
        case If(condition=condition):
            has_loop = any(isinstance(s, For) for s in walk((statement,)))
            return has_loop and not isinstance(condition, Compute) and iterator not in names_in(condition)
        case _:
            return False


def _is_plain(code: Code, arrays: Mapping[str, Array]) -> bool:
    """Return whether code is stores to scalars and at integers, branches and sequential loops."""
    if any(a.shape or a.lanes or a.space is not Space.REGISTER for a in arrays.values()):
        return False
    inside = list(walk(code))
    if sum(isinstance(s, Array) for s in inside) > sum(isinstance(s, Array) for s in code):
        return False
    return all(
        isinstance(s, Store | If | Array) or (isinstance(s, For) and s.kind is Kind.SEQUENTIAL)
        for s in inside
    )


def _is_worth_it(loop: For, arrays: Mapping[str, Array]) -> bool:
    """Return whether accesses in loops that would go outside are at neighbours of the points.

    Those that no point moves, and those that no iterator moves, do not count.
    """
    found = list(_accesses(loop.body, loop.iterator, (), arrays))
    return any(found) and None not in found


def _accesses(
    code: Code, point: str, loops: tuple[str, ...], arrays: Mapping[str, Array]
) -> Iterator[bool | None]:
    """Yield for each access in a shared loop whether points move it to a neighbour, and the loop further.

    None: where the points of the parallel loop are apart in memory.
    """
    for statement in code:
        if loops:
            stored = (Load(statement.array, statement.subscripts),) if isinstance(statement, Store) else ()
            for load in (*loads_of(statement), *stored):
                if load.array not in arrays:
                    yield _access(load, point, loops)
        further = loops
        if isinstance(statement, For) and _is_shared(statement, point):
            further = (*loops, statement.iterator)
        for block in blocks(statement):
            yield from _accesses(block, point, further, arrays)


def _access(load: Load, point: str, loops: tuple[str, ...]) -> bool | None:
    if any(isinstance(s, Compute) for s in load.subscripts):
        return None
    subscripts = [s for s in load.subscripts if not isinstance(s, Compute)]
    moved = [s for s in subscripts if point in names_in(s)]
    if not moved:
        return False
    found = linear_in(subscripts[-1], point) if len(moved) == 1 else None
    if found is None or found[0] != 1 or names_in(found[1]) & set(loops):
        return None
    return any(names_in(s) & set(loops) for s in subscripts[:-1])


def _crossing(code: Code, iterator: str, arrays: Mapping[str, Array]) -> list[str]:
    """Return the scalars that live longer than one run of statements between shared loops."""
    runs = list(_runs(code, iterator))
    found = []
    for name in arrays:
        using = [run for run in runs if name in arrays_used(run)]
        if len(using) > 1 or any(not _is_set_first(run, name) for run in using):
            found.append(name)
    return found


def _runs(code: Code, iterator: str) -> Iterator[Code]:
    for together, run in groupby(code, lambda s: not _is_shared(s, iterator)):
        statements = tuple(run)
        if together:
            yield statements
        else:
            for statement in statements:
                for block in blocks(statement):
                    yield from _runs(block, iterator)


def _is_set_first(run: Code, name: str) -> bool:
    """Return whether the first statement of a run that uses a scalar sets it, whatever it held."""
    first = next(s for s in run if name in arrays_used((s,)))
    loads = {load.array for load in loads_of(first)}
    return isinstance(first, Store) and first.array == name and name not in loads
