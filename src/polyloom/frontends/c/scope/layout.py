"""Where the members of structures lie, as the usual compilers for Linux place them.

A member begins at the next multiple of its alignment, which is that of the largest number in it. Who relies
on that asks the compiler: packed structures, and those with anonymous ones inside, lie otherwise.
Source: the System V ABI for AMD64, Sec. 3.1.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyloom.frontends.c.scope.names import Place
from polyloom.frontends.c.scope.types import Array, CType, Extent, Pointer, Record, Scalar
from polyloom.polyhedra.loops.tree import Number
from polyloom.scop.model import StructureMember

POINTER = 8
"""Bytes of a pointer, and what its address is a multiple of."""


def structure_member(place: Place) -> StructureMember | None:
    """Return where the elements of a place lie in the array of structures around them.

    None where no array of structures is around them, or where it is not known how these lie.
    """
    depth = next((k for k, count in enumerate(place.levels, 1) if count), len(place.levels))
    if depth == len(place.levels):
        return None
    try:
        return _member(place, depth)
    except _Unknown:
        return None


class _Unknown(Exception):
    """Raised where it is not known how something lies."""


@dataclass(frozen=True)
class _Size:
    """Bytes of a type, and what its address is a multiple of."""

    bytes: int
    alignment: int


def _member(place: Place, depth: int) -> StructureMember:
    """Return the member; the subscripts of the array stand behind the first ``depth`` names of the path."""
    structure = _inside(place.variable.type, place.levels[0])
    for name, count in zip(place.members[: depth - 1], place.levels[1:], strict=False):
        structure = _inside(_found(structure, name)[1], count)
    first, steps, around = 0, list[int](), structure
    for name, count in zip(place.members[depth - 1 :], place.levels[depth:], strict=True):
        offset, around = _found(around, name)
        first += offset
        for _ in range(count):
            around = _inside(around, 1)
            steps.append(_size(around).bytes)
    return StructureMember(
        array=".".join((place.variable.unique, *place.members[: depth - 1])),
        depth=depth,
        size=_size(structure).bytes,
        first=first,
        steps=tuple(steps),
    )


def _inside(ctype: CType, levels: int) -> CType:
    """Return the type behind some subscripts."""
    for _ in range(levels):
        match ctype:
            case Array(element=element) | Pointer(target=element):
                ctype = element
            case _:
                raise _Unknown
    return ctype


def _found(structure: CType, name: str) -> tuple[int, CType]:
    """Return from which byte on a member lies in its structure, and its type."""
    if not isinstance(structure, Record) or structure.union:
        raise _Unknown
    at = 0
    for member, ctype in structure.members:
        size = _size(ctype)
        at = _up(at, size.alignment)
        if member == name:
            return at, ctype
        at += size.bytes
    raise _Unknown


def _size(ctype: CType) -> _Size:
    match ctype:
        case Scalar(element=element):
            return _Size(element.size, element.size)
        case Pointer():
            return _Size(POINTER, POINTER)
        case Array(element=element, extent=Extent(expression=Number(value=count))):
            inner = _size(element)
            return _Size(count * inner.bytes, inner.alignment)
        case Record(members=members, union=union) if members:
            sizes = [_size(member) for _, member in members]
            alignment = max(size.alignment for size in sizes)
            if union:
                return _Size(_up(max(size.bytes for size in sizes), alignment), alignment)
            at = 0
            for size in sizes:
                at = _up(at, size.alignment) + size.bytes
            return _Size(_up(at, alignment), alignment)
        case _:
            raise _Unknown


def _up(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment
