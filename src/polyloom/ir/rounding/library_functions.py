"""Functions of floats whose last bits each library, and each device, rounds in its own way."""

from __future__ import annotations

from collections.abc import Iterator

from polyloom.ir.expressions import EXACT_UNARY, Binary, BinaryOp, Expression, Unary, UnaryOp, walk
from polyloom.ir.host import HostProgram, MdHom, Nest, expressions_of, walk_host

_OF_TWO = frozenset({BinaryOp.POWER, BinaryOp.ATAN2, BinaryOp.HYPOT})
_ROUNDED = EXACT_UNARY | {UnaryOp.SQRT}


def library_functions(program: HostProgram) -> tuple[str, ...]:
    """Return the names of the functions of a program that no standard rounds correctly, in order."""
    parts = (part for e in _expressions(program) for part in walk(e))
    return tuple(sorted({p.op.value for p in parts if isinstance(p, Unary | Binary) and _is_from_library(p)}))


def _is_from_library(part: Expression) -> bool:
    match part:
        case Unary(op=op):
            return part.type.is_float and op not in _ROUNDED
        case Binary(op=op):
            return part.type.is_float and op in _OF_TWO
        case _:
            return False


def _expressions(program: HostProgram) -> Iterator[Expression]:
    for node in walk_host(program.body):
        match node:
            case MdHom():
                yield from expressions_of(node)
            case Nest(assignments=assignments):
                yield from (e for a in assignments for e in (a.value, a.condition) if e is not None)
            case _:
                pass
