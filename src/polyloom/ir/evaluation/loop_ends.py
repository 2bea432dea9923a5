"""Arrays that say from where to where loops go through others: made-up ones grow, and end where these do.

for (k = row[i]; k < row[i + 1]; k++) s += a[k] * x[col[k]];    0 <= row[0] <= row[1] <= ... <= len(a)
"""

from __future__ import annotations

from collections.abc import Iterator as Iterator_
from collections.abc import Mapping, Sequence

from polyloom.ir.expressions import (
    Assign,
    Compare,
    Convert,
    Expression,
    Local,
    Procedure,
    Read,
    all_steps,
    walk,
)
from polyloom.ir.host import HostProgram, Index, Nest, View
from polyloom.polyhedra.loops.tree import leaves_in


def loop_ends(program: HostProgram, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the buffers of integers that begin or end such loops, with the largest value of each."""
    found: dict[str, int] = {}
    for node in leaves_in(program.body):
        for assignment in node.assignments if isinstance(node, Nest) else ():
            for value in (assignment.value, assignment.condition):
                for part in () if value is None else walk(value):
                    if isinstance(part, Procedure):
                        for name, end in _ends(part, assignment.reads, shapes):
                            found[name] = min(found.get(name, end), end)
    return found


def _ends(
    procedure: Procedure, reads: Sequence[View], shapes: Mapping[str, tuple[int, ...]]
) -> Iterator_[tuple[str, int]]:
    limits = _limits(procedure, reads, shapes)
    for local, value in _met(procedure):
        for part in walk(value):
            if isinstance(part, Read) and not part.type.is_float and local in limits:
                yield reads[part.position].buffer, limits[local]


def _limits(
    procedure: Procedure, reads: Sequence[View], shapes: Mapping[str, tuple[int, ...]]
) -> dict[Local, int]:
    """Return the variables that select elements, with how many there are."""
    limits: dict[Local, int] = {}
    for position in {part.position for part in walk(procedure) if isinstance(part, Read)}:
        view = reads[position]
        for index, extent in zip(view.indices, shapes.get(view.buffer, ()), strict=False):
            chosen = None if isinstance(index, Index) else _unconverted(index)
            if isinstance(chosen, Local):
                limits[chosen] = min(limits.get(chosen, extent), extent)
    return limits


def _met(procedure: Procedure) -> Iterator_[tuple[Local, Expression]]:
    """Yield what is assigned to variables, or compared with them."""
    for step in all_steps(procedure.body):
        if isinstance(step, Assign):
            yield step.local, step.value
            continue
        for part in walk(step.condition):
            if isinstance(part, Compare):
                sides = _unconverted(part.left), _unconverted(part.right)
                for local, other in (sides, sides[::-1]):
                    if isinstance(local, Local):
                        yield local, other


def _unconverted(expression: Expression) -> Expression:
    return _unconverted(expression.operand) if isinstance(expression, Convert) else expression
