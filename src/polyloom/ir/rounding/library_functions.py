"""Functions of floats whose last bits each library, and each device, rounds in its own way."""

from __future__ import annotations

from collections.abc import Iterator

from polyloom.ir.expressions import Binary, Expression, Unary, walk
from polyloom.ir.host import HostProgram, MdHom, Nest, expressions_of, walk_host


def library_functions(program: HostProgram) -> tuple[str, ...]:
    """Return the names of the functions of a program that no standard rounds correctly, in order."""
    parts = (part for e in _expressions(program) for part in walk(e))
    calls = (p for p in parts if isinstance(p, Unary | Binary) and p.type.is_float)
    return tuple(sorted({p.op.name for p in calls if not p.op.rounding.standard}))


def _expressions(program: HostProgram) -> Iterator[Expression]:
    for node in walk_host(program.body):
        match node:
            case MdHom():
                yield from expressions_of(node)
            case Nest(assignments=assignments):
                yield from (e for a in assignments for e in (a.value, a.condition) if e is not None)
            case _:
                pass
