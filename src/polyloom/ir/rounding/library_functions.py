"""Functions of floats whose last bits each library, and each device, rounds in its own way."""

from __future__ import annotations

from polyloom.ir.expressions import Binary, Unary, walk
from polyloom.ir.host import HostProgram, all_expressions


def library_functions(program: HostProgram) -> tuple[str, ...]:
    """Return the names of the functions of a program that no standard rounds correctly, in order."""
    parts = (part for e in all_expressions(program) for part in walk(e))
    calls = (p for p in parts if isinstance(p, Unary | Binary) and p.type.is_float)
    return tuple(sorted({p.op.name for p in calls if not p.op.rounding.standard}))
