"""Places in memory and pointers to them: subscripts, members, decay, arithmetic.

A pointer is a place whose last index may be moved, so that ``p[k]``, ``*(p + k)`` and ``A[i][j]`` are the
same thing.
"""

from __future__ import annotations

from dataclasses import replace

from polyloom.diagnostics import Span
from polyloom.frontends.c.expressions.rows import in_rows
from polyloom.frontends.c.scope.conversions import operation
from polyloom.frontends.c.scope.drafts import Access, FoundArray
from polyloom.frontends.c.scope.names import Address, Index, Place, Variable
from polyloom.frontends.c.scope.sets import constant_affine as number
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import (
    Array,
    CType,
    Extent,
    Pointer,
    Record,
    Scalar,
    Unmodelled,
    spelling,
)
from polyloom.frontends.c.syntax.faults import refuse
from polyloom.ir.expressions import BinaryOp, Constant
from polyloom.ir.types import ElementType


def zero() -> Index:
    """Return the index 0."""
    return Index(number(0), Constant(0, ElementType.INT32))


def place_of(variable: Variable) -> Place:
    """Return the place of a variable, with no index yet."""
    return Place(variable, variable.type)


def decayed(place: Place) -> Address | None:
    """Return the pointer that a place of array or pointer type is as a value; None for other types."""
    match place.type:
        case Array(element=element, extent=extent):
            return Address(_indexed(place, zero(), element, extent), steps=True)
        case Pointer(target=target) if not place.members and not place.indices:
            return Address(_indexed(place, zero(), target, None), steps=True)
        case _:
            return None


def _indexed(place: Place, index: Index, ctype: CType, extent: Extent | None) -> Place:
    levels = (*place.levels[:-1], place.levels[-1] + 1)
    return replace(
        place,
        type=ctype,
        indices=(*place.indices, index),
        levels=levels,
        extents=(*place.extents, extent),
    )


def moved(address: Address, by: Index, span: Span | None) -> Address:
    """Return ``address + by``. Errors: ``c-pointer`` where it leaves an object."""
    if by.affine is not None and by.affine.is_equal(number(0)):
        return address
    if not address.steps:
        refuse(
            "c-pointer",
            f"the pointer to `{address.place.variable.name}` is moved off what it points to",
            span,
            helps=["point into an array"],
        )
    last = address.place.indices[-1]
    total = _sum(last, by)
    return Address(replace(address.place, indices=(*address.place.indices[:-1], total)), steps=True)


def _sum(first: Index, second: Index) -> Index:
    if first.affine is not None and first.affine.is_equal(number(0)):
        return second
    value = operation(BinaryOp.ADD, first.value, second.value)
    if first.affine is None or second.affine is None:
        fault = first if first.affine is None else second
        return Index(None, value, fault.reason, fault.span)
    return Index(first.affine.add(second.affine), value)


def member(place: Place, name: str, span: Span | None) -> Place:
    """Return ``place.name``. Errors: ``c-member``."""
    record = place.type
    if isinstance(record, Record) and not record.union:
        for found, ctype in record.members:
            if found == name:
                return replace(place, type=ctype, members=(*place.members, name), levels=(*place.levels, 0))
    what = "a union" if isinstance(record, Record) and record.union else f"`{spelling(record)}`"
    return refuse(
        "c-member",
        f"{what} has no member `{name}` that a SCoP can use",
        span,
        helps=["members of structures that are defined in the file can be used, those of unions cannot"],
    )


def array_of(place: Place, state: State) -> FoundArray:
    """Return the array that the elements of a place form, and remember it.

    Errors: ``c-record``, ``c-pointer``.
    """
    full = whole(place)
    if not isinstance(full.type, Scalar):
        refuse_type(full)
    return found_array(full, state)


def found_array(full: Place, state: State) -> FoundArray:
    """Return the array that a place is an element of, which may be a whole structure."""
    key = (full.variable, full.members)
    if key not in state.array_names:
        unique = full.variable.unique
        name = state.fresh("_".join((unique, *full.members))) if full.members else unique
        state.array_names[key] = name
        state.arrays[name] = FoundArray(name, full.type, full.extents, full.levels, full)
    return state.arrays[state.array_names[key]]


def refuse_type(place: Place) -> None:
    """Refuse what is no element. Errors: ``c-record``, ``c-pointer``, ``c-type``."""
    refuse_unmodelled(place, place.variable.span)
    what = "a structure" if isinstance(place.type, Record) else "a pointer"
    refuse(
        "c-record" if isinstance(place.type, Record) else "c-pointer",
        f"`{place.variable.name}` holds {what}, which a SCoP cannot read or write as a whole",
        place.variable.span,
        helps=["use its members" if isinstance(place.type, Record) else "use an array: `double A[n][m]`"],
    )


def refuse_unmodelled(place: Place, span: Span | None) -> None:
    """Refuse elements that no SCoP reads or writes. Errors: ``c-type``."""
    if isinstance(place.type, Unmodelled):
        name = ".".join((place.variable.name, *place.members))
        refuse(
            "c-type",
            f"a SCoP reads and writes no elements that are {place.type.what}, as those of `{name}` are",
            span,
            helps=["copy them into another array before the loops, or back after them"],
        )


def whole(place: Place) -> Place:
    """Return a place inside the array, with an index for each dimension that is left."""
    while isinstance(place.type, Array):
        place = _indexed(place, zero(), place.type.element, place.type.extent)
    return place


def accessed(place: Place, state: State, span: Span | None, *, records: bool = False) -> int:
    """Remember a reference to an element here; return its position in the pool. Errors: ``c-row``.

    A place with fewer indices than dimensions is a whole row or array; with ``records`` also whole
    structures.
    """
    found = found_array(whole(place), state) if records else array_of(place, state)
    rest = len(found.extents) - len(place.indices)
    state.pool.append(Access(found.name, in_rows(place, state, span), state.path, span, rest))
    return len(state.pool) - 1
