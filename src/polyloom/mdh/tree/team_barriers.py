"""Barriers behind parallel loops: a team of threads need not wait where none needs what another one did.

    parallel for i from 0 to n: x[i] = a[i] * 2          no barrier: what follows is of other arrays
    parallel for k from 0 to m: z[k] = b[k] * 3          no barrier: a thread has the same iterations again
    parallel for k from 0 to m: y[k] = z[k] + 1          a barrier: x[k + 1] may be another thread's
    parallel for k from 0 to m: w[k] = x[k + 1]

Threads share loops of the same bounds alike, unless they share by work. Loops one right behind another, all
of which but the last are ``nowait``, run at the same time: of an element that one of them stores to, another
one may be at the same iteration alone, and only if they are shared alike.

Source: OpenMP's ``nowait``. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from polyloom.mdh.tree.accesses import OPERATIONS, Access, Found, Step, accesses
from polyloom.mdh.tree.nodes import Array, Code, For, Function, Kind, Mark, Statement, Store
from polyloom.mdh.tree.races import by_array
from polyloom.mdh.tree.rewrite import arrays_used, blocks, integers_used, walk, with_blocks
from polyloom.mdh.tree.trips import nested_groups
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.polyhedra.loops.accesses import (
    Apart,
    Meeting,
    NotKnown,
    Pair,
    meeting,
    question,
    together,
)
from polyloom.polyhedra.loops.scope import Scope

EFFORT = 2_000_000
"""What isl may spend on all barriers of a function: half a second."""


def team_races(found: Found, body: Code) -> None:
    """Add to what is wrong, or not known, the races between parallel loops without a barrier between them."""
    found.wrong.update(dict.fromkeys(_behind_nothing(body)))
    for of_array in by_array(found.accesses):
        for first, second in combinations(_by_loop(of_array), 2):
            if _at_the_same_time(first.step, second.step):
                _note(found, first, second)


def _note(found: Found, first: _Inside, second: _Inside) -> None:
    name = first.accesses[0].declared.array.name
    where = f"`{name}`, and no barrier is between the parallel loops over "
    where += f"`{first.loop.iterator}` and `{second.loop.iterator}`"
    for sure in (True, False):
        try:
            met = _meeting(*(_only(inside, sure=sure) for inside in (first, second)))
        except NotKnown:
            found.unknown[f"whether threads meet in {where}"] = None
            return
        if met is not None:
            element = f" at `{name}[{', '.join(map(str, met.element))}]`" if met.element else ""
            if sure:
                found.wrong[f"threads meet in {where}{element}"] = None
            else:
                found.unknown[f"whether threads meet in {where}{element}"] = None
            return


def _behind_nothing(code: Code) -> Iterator[str]:
    """Yield what is wrong with loops behind which threads go on to something that is no parallel loop."""
    for k, statement in enumerate(code):
        if isinstance(statement, For) and statement.nowait and _next_loop(code, k) is None:
            yield f"no thread waits behind the loop over `{statement.iterator}`, and no parallel one follows"
        for block in blocks(statement):
            yield from _behind_nothing(block)


def _is_parallel(statement: Statement) -> bool:
    return isinstance(statement, For) and statement.kind is Kind.GROUP


def _next_loop(code: Code, k: int) -> For | None:
    """Return the parallel loop right behind a statement, but for marks."""
    found = next((s for s in code[k + 1 :] if not isinstance(s, Mark)), None)
    return found if isinstance(found, For) and found.kind is Kind.GROUP else None


# -- where two loops meet


@dataclass(frozen=True, eq=False)
class _Inside:
    """The accesses to an array in a parallel loop that is in no other one."""

    step: Step
    loop: For
    position: int
    accesses: tuple[Access, ...]


def _by_loop(of_array: Sequence[Access]) -> list[_Inside]:
    """Return accesses loop by loop, in the order of the text; those of a thread's own arrays are left out."""
    found: dict[tuple[int, int], list[Access]] = {}
    for access in of_array:
        depth = _depth(access)
        if depth is not None and access.declared.depth <= depth:
            step = access.path[depth]
            found.setdefault((id(step.block), step.index), []).append(access)
    return [_inside(found[key]) for key in sorted(found)]


def _inside(of_loop: Sequence[Access]) -> _Inside:
    depth = _depth(of_loop[0])
    assert depth is not None
    step = of_loop[0].path[depth]
    assert step.around is not None
    return _Inside(step, step.around.loop, step.around.position, tuple(of_loop))


def _depth(access: Access) -> int | None:
    """Return the number of the outermost parallel loop among the statements around an access."""
    around = (k for k, s in enumerate(access.path) if s.around is not None and _is_parallel(s.around.loop))
    return next(around, None)


def _at_the_same_time(first: Step, second: Step) -> bool:
    between = first.block[first.index : second.index]
    return first.block is second.block and all(
        isinstance(s, Mark) or (isinstance(s, For) and s.kind is Kind.GROUP and s.nowait) for s in between
    )


def _only(inside: _Inside, *, sure: bool) -> _Inside:
    return replace(inside, accesses=tuple(a for a in inside.accesses if a.sure or not sure))


def _meeting(first: _Inside, second: _Inside) -> Meeting | None:
    """Return an element in which different threads may meet. Errors: NotKnown."""
    for stores, others in ((first, second), (second, first)):
        stored = [a.elements for a in stores.accesses if a.is_store]
        accessed = [a.elements for a in others.accesses]
        if not stored or not accessed:
            continue
        outer = [Pair(k, k, Apart.EQUAL) for k in range(first.position)]
        with question("whether threads meet", OPERATIONS):
            loops = _shared_alike(first.loop, second.loop)
            count = first.position + max(1, loops)
            one, other = together(stored, count), together(accessed, count)
            for pairs in _apart(first.position, loops):
                met = meeting(one, other, [*outer, *pairs])
                if met is not None:
                    return met
    return None


def _apart(position: int, loops: int) -> Iterator[list[Pair]]:
    """Yield how iterations of loops that are shared alike differ; nothing is said of others."""
    if not loops:
        yield []
    places = range(position, position + loops)
    for k, place in enumerate(places):
        yield [*(Pair(p, p, Apart.EQUAL) for p in places[:k]), Pair(place, place, Apart.OTHER)]


def _shared_alike(first: For, second: For) -> int:
    """Return how many nested loops threads share in the same way; 0 where they do not."""
    if first.by_work or second.by_work:
        return 0
    both = nested_groups(first), nested_groups(second)
    bounds = [[(loop.start, loop.end, loop.step) for loop in loops] for loops in both]
    return len(both[0]) if bounds[0] == bounds[1] else 0


# -- the pass


def without_needless_barriers(function: Function, effort: int = EFFORT) -> Function:
    """Let threads go on behind parallel loops where no thread needs what another one does before.

    Keeps true: no two threads meet in an element that one of them stores to. What isl does not find out
    keeps its barrier. ``effort``: operations of isl on all of it.
    """
    asked = _Asked(function)
    try:
        with at_most(effort, "which barriers are needed"):
            return replace(function, body=asked.code(function.body))
    except TooHardError:
        return function


@dataclass(frozen=True)
class _Touched:
    """The arrays that code loads or stores to, and those of them that it stores to."""

    all: frozenset[str]
    stored: frozenset[str]

    def meets(self, other: _Touched) -> bool:
        """Whether there is an array that one side stores to, and the other one touches."""
        return bool(self.stored & other.all or self.all & other.stored)


@dataclass(frozen=True, eq=False)
class _Asked:
    function: Function

    def code(self, code: Code) -> Code:
        """Return a block, and those inside it, in which threads wait only where they must."""
        found = [s if _is_parallel(s) else with_blocks(s, self.code) for s in code]
        run: list[For] = []
        for k, loop in enumerate(code):
            following = _next_loop(code, k)
            if isinstance(loop, Mark) or not isinstance(loop, For):
                run = run if isinstance(loop, Mark) else []
            elif following is None or not _is_parallel(loop):
                run = []
            elif all(self._are_apart(before, following) for before in (*run, loop)):
                run.append(loop)
                found[k] = replace(loop, nowait=True)
            else:
                run = []
        return tuple(found)

    def _are_apart(self, first: For, second: For) -> bool:
        """Whether no thread needs what another one does in two loops."""
        if not self._touched(first).meets(self._touched(second)):
            return True
        return bool(_shared_alike(first, second)) and self._never_meet(first, second)

    def _touched(self, loop: For) -> _Touched:
        memory = {view.name: view.parameter for view in self.function.reshaped}
        stored = {s.array for s in walk((loop,)) if isinstance(s, Store)}
        touched = arrays_used((loop,))
        return _Touched(*(frozenset(memory.get(n, n) for n in names) for names in (touched, stored)))

    def _never_meet(self, first: For, second: For) -> bool:
        found, code = Found(), (replace(first, nowait=True), second)
        names = integers_used(code) - {s.iterator for s in walk(code) if isinstance(s, For)}
        used = arrays_used(code)
        body: Code = (*(s for s in outside_of_loops(self.function.body) if s.name in used), *code)
        accesses(replace(self.function, body=body), Scope.of_names(sorted(names)), found)
        checked = Found(accesses=found.accesses)
        team_races(checked, code)
        return not (checked.wrong or checked.unknown or found.lost)


def outside_of_loops(code: Code) -> Iterator[Array]:
    """Yield the arrays that all threads share."""
    for statement in code:
        if isinstance(statement, Array):
            yield statement
        elif not _is_parallel(statement):
            yield from (array for block in blocks(statement) for array in outside_of_loops(block))
