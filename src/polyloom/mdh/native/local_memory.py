"""Where the local arrays of a function lie: those that are not needed at the same time share memory.

    t1 = conv(x);  t2 = pool(t1);  t3 = conv(t2)      t1 and t3 begin at the same place

What one layer of a model leaves in a cache is there for the next one; memory for all of them is not. Not in
the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from polyloom.mdh.tree.nodes import Code, For, Function, Mark, Statement
from polyloom.mdh.tree.rewrite import arrays_used
from polyloom.mdh.tree.trips import is_parallel

Bytes = Mapping[str, int]


Span = tuple[int, int]
"""The first and the last step that speak of an array."""


@dataclass(frozen=True)
class Places:
    """Where arrays begin in a piece of memory of ``size`` bytes."""

    offsets: Mapping[str, int]
    size: int


def shared_places(spans: Mapping[str, Span], sizes: Bytes, line: int) -> Places:
    """Return places for the arrays in ``sizes``, parameters whose elements are of no use between two runs.

    Two of them overlap only where no step that all threads have finished, before another one begins, speaks
    of one while the other holds something. ``line``: what places are multiples of.
    """
    spans = {name: span for name, span in spans.items() if name in sizes}
    placed: dict[str, int] = {}
    for name in sorted(spans, key=lambda n: (-sizes[n], spans[n])):
        others = sorted((placed[o], placed[o] + sizes[o]) for o in placed if _meet(spans[name], spans[o]))
        at = 0
        for begin, end in others:
            if at + sizes[name] <= begin:
                break
            at = max(at, -(-end // line) * line)
        placed[name] = at
    return Places(placed, max((at + sizes[name] for name, at in placed.items()), default=0))


def _meet(a: Span, b: Span) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def spans_of(function: Function) -> dict[str, Span]:
    """Return the steps between which each array is spoken of."""
    views = {view.name: view.parameter for view in function.reshaped}
    found: dict[str, Span] = {}
    for step, code in enumerate(_steps(function.body)):
        for used in {views.get(name, name) for name in arrays_used(code)}:
            found[used] = (found.get(used, (step, step))[0], step)
    return found


def _steps(code: Code) -> Iterator[Code]:
    """Yield parallel parts, and what lies between two of them: each is a function in C, ``restrict``.

    Loops that no barrier is between run at the same time: with what is between them they are one part.
    """
    between: list[Statement] = []
    part: list[Statement] = []
    for statement in code:
        if part or is_parallel(statement):
            part.append(statement)
            if not isinstance(statement, Mark) and not (isinstance(statement, For) and statement.nowait):
                yield from (tuple(between), tuple(part))
                between, part = [], []
        else:
            between.append(statement)
    yield (*between, *part)
