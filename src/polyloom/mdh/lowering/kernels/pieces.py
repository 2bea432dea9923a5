"""The tree of a node cut into pieces, each of which becomes a kernel.

    float32 partial[4, n] in group                 temporary: partial
    parallel for part from 0 to 4: ...       ->    kernel 1: its parallel loops
    parallel for i_group from 0 to n: ...          kernel 2: its parallel loops

What stands beside parallel loops is a kernel of one group. A kernel begins when the one before it is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from polyloom.mdh.tree.nodes import ONE, Array, Code, For, If, Kind, LetInteger, Space, Statement, counted
from polyloom.mdh.tree.rewrite import arrays_used, declared_in, substituted, walk


@dataclass(frozen=True)
class Piece:
    """One kernel: a parallel loop. ``shared``: arrays that other kernels have, too."""

    loop: For
    shared: tuple[Array, ...] = ()


def pieces(code: Code, alone: str) -> tuple[Piece, ...]:
    """Return the kernels of a node in their order. ``alone``: the iterator of a group without others.

    A loop that declares an array has nothing to do with one of that name before another loop.
    """
    code = _named_in_place(code)
    declared = tuple(s for s in code if isinstance(s, Array) and s.space is Space.GROUP)
    loops = tuple(_loops(tuple(s for s in code if s not in declared), alone))
    free = [arrays_used((loop,)).difference(declared_in((loop,))) for loop in loops]
    users = {a.name: [k for k, names in enumerate(free) if a.name in names] for a in declared}
    found = []
    for k, loop in enumerate(loops):
        own = tuple(a for a in declared if users[a.name] == [k] and loop.iterator == alone)
        shared = tuple(a for a in declared if k in users[a.name] and a not in own)
        found.append(Piece(replace(loop, body=(*own, *loop.body)), shared))
    return tuple(found)


def _named_in_place(code: Code) -> Code:
    """Return a block with the values of its integers in their place: each kernel is on its own."""
    for at, statement in enumerate(code):
        if isinstance(statement, LetInteger):
            rest = substituted(code[at + 1 :], statement.name, statement.value)
            return (*code[:at], *_named_in_place(rest))
    return code


def _loops(code: Code, alone: str) -> Iterator[For]:
    """Yield parallel loops; what stands between two of them becomes one of one point."""
    run: list[Statement] = []
    for statement in code:
        inside = _parallel(statement)
        if inside is None:
            run.append(statement)
            continue
        if run:
            yield counted(alone, ONE, tuple(run), kind=Kind.GROUP)
            run = []
        yield from inside
    if run:
        yield counted(alone, ONE, tuple(run), kind=Kind.GROUP)


def _parallel(statement: Statement) -> tuple[For, ...] | None:
    """Return the parallel loops that a statement consists of; None where there are none in it.

    A branch around them becomes one inside of each.
    """
    match statement:
        case For(kind=Kind.GROUP):
            return (statement,)
        case If(condition=condition, body=body, otherwise=()):
            found = [_parallel(s) for s in body]
            if any(loops is None for loops in found):
                assert not any(_is_group(s) for s in walk(body)), "a branch around loops of both kinds"
                return None
            loops = [loop for each in found for loop in each or ()]
            return tuple(replace(loop, body=(If(condition, loop.body),)) for loop in loops)
        case _:
            assert not any(_is_group(s) for s in walk((statement,))), "a parallel loop in a sequential one"
            return None


def _is_group(statement: Statement) -> bool:
    return isinstance(statement, For) and statement.kind is Kind.GROUP
