"""How many points the loops of a call have, of the integers that it is given.

C[i, j] += A[i, k] * B[k, j]     ->     n * m * k, and of a copy of C: n * m
"""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.ir.host import Copy, HostProgram, MdHom, Nest
from polyloom.mdh.lowering.tiles.groups import LEAST_SHARED
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, names_in, nodes_in, product_of

LEAST_REPEATED = 512
"""Points of loops inside of others that stay in C, for which a function is called: a call takes 12 ns, which
is what the C compiler's own vectors take for a hundred elements in the first cache. Measured on a Zen 3."""


def points_of(program: HostProgram) -> Sequence[IntExpression] | None:
    """Return the points of each node of which not few are known, of parameters; None where others decide."""
    found, parameters = list[IntExpression](), {p.name for p in program.parameters}
    for node in nodes_in(program.body):
        match node:
            case MdHom(extents=extents):
                points = product_of(extents)
            case Copy(source=source):
                points = product_of(program.buffer(source).shape)
            case Nest(extents=extents) if extents:
                return None
            case _:
                continue
        if isinstance(points, Number) and points.value < LEAST_SHARED:
            continue
        if isinstance(points, Number) or not names_in(points) <= parameters:
            return None
        found.append(points)
    return found or None


def any_has(points: Sequence[IntExpression], least: int) -> IntExpression:
    """Return whether any node has as many points."""
    found = tuple(Operation(">=", (n, Number(least))) for n in dict.fromkeys(points))
    return found[0] if len(found) == 1 else Operation("or", found)
