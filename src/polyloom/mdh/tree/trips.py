"""How often parallel loops are carried out, and which of them are one."""

from __future__ import annotations

from polyloom.mdh.tree.nodes import For, Kind, Statement
from polyloom.mdh.tree.rewrite import walk
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, names_in, sum_of


def is_parallel(statement: Statement) -> bool:
    """Return whether there is a parallel loop in a statement."""
    return any(isinstance(s, For) and s.kind is Kind.GROUP for s in walk((statement,)))


def nested_groups(loop: For) -> list[For]:
    """Return a parallel loop with those right inside it whose bounds do not depend on outer ones."""
    loops = [loop]
    while len(loops[-1].body) == 1:
        (inner,) = loops[-1].body
        if not isinstance(inner, For) or inner.kind is not Kind.GROUP:
            break
        if (names_in(inner.start) | names_in(inner.end)) & {each.iterator for each in loops}:
            break
        loops.append(inner)
    return loops


def trip_count(loop: For) -> IntExpression:
    """Return how many iterations a loop ``from start to end step number`` has. Errors: ValueError."""
    if not isinstance(loop.step, Number) or loop.step.value < 1:
        raise ValueError(f"the loop over {loop.iterator} has no such step")
    step = loop.step.value
    length = sum_of([(1, loop.end), (-1, loop.start), (1, Number(step - 1))])
    if isinstance(length, Number):
        return Number(max(0, length.value // step))
    steps = length if step == 1 else Operation("/", (length, Number(step)))
    return Operation("max", (Number(0), steps))
