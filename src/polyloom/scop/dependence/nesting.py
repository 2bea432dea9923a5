"""Which loops of the source two statements share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl

from polyloom.polyhedra.bounds import greatest_coordinate
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.model import Scop, ScopStatement

_DIM = isl.dim_type
Entries = tuple[int | None, ...]
"""A statement's schedule: its constants, None where it has an iterator."""


def schedules(scop: Scop) -> dict[str, Entries]:
    """Return the schedule of every statement."""
    return {m.get_tuple_name(_DIM.in_) or "": _entries(m) for m in maps_of(scop.schedule)}


def times_of(scop: Scop) -> dict[str, tuple[int | tuple[int, int], ...]]:
    """Return the schedule of every statement: constants, and iterators by number with their sign.

    Every second dimension is an iterator; where that follows from others, isl writes it by those.
    """
    maps = {m.get_tuple_name(_DIM.in_) or "": m for m in maps_of(scop.schedule)}
    return {s.name: _times(maps[s.name]) for s in scop.statements if s.name in maps}


def _times(schedule: isl.Map) -> tuple[int | tuple[int, int], ...]:
    loops = schedule.dim(_DIM.in_)

    def time(place: int, aff: isl.Aff) -> int | tuple[int, int]:
        if not _is_iterator(place, loops):
            return int(aff.get_constant_val().to_python())
        loop = place // 2
        upwards = isl.Map.universe(schedule.get_space()).equate(_DIM.in_, loop, _DIM.out, place)
        return loop, 1 if schedule.is_subset(upwards) else -1

    return tuple(time(place, aff) for place, aff in enumerate(_affs(schedule)))


def _entries(schedule: isl.Map) -> Entries:
    """Return constants, and None for iterators, those of a loop with one iteration included."""
    loops = schedule.dim(_DIM.in_)
    return tuple(
        int(aff.get_constant_val().to_python()) if aff.is_cst() and not _is_iterator(place, loops) else None
        for place, aff in enumerate(_affs(schedule))
    )


def _is_iterator(place: int, loops: int) -> bool:
    loop, inside = divmod(place, 2)
    return bool(inside) and loop < loops


def _affs(schedule: isl.Map) -> list[isl.Aff]:
    """Return the schedule's dimensions as functions of the iterators, on one piece.

    That is enough: constants are the same on all, and nobody asks for the others.
    """
    function = schedule.as_pw_multi_aff()
    return [function.get_pw_aff(k).get_pieces()[0][1] for k in range(function.dim(_DIM.out))]


def shared_loops(entries: Mapping[str, Entries], names: Sequence[str]) -> int:
    """Return how many outermost loops all the named statements share."""
    count = 0
    for column in zip(*(entries[name] for name in names), strict=True):
        if any(value != column[0] for value in column):
            break
        count += column[0] is None
    return count


def is_in_loops_of(a: Entries, b: Entries) -> bool:
    """Whether the second statement stands in the same loops as the first one, or in loops inside these."""
    return a[: depth_of(a)] == b[: depth_of(a)] and b.count(None) >= a.count(None)


def depth_of(entries: Entries) -> int:
    """Return where in its schedule a statement's place in its innermost loop stands."""
    return 1 + max((k for k, entry in enumerate(entries) if entry is None), default=-1)


def shares_all_loops(a: Entries, b: Entries) -> bool:
    """Whether two statements stand in the same loops, one of them after the other in the innermost."""
    return is_in_loops_of(a, b) and a.count(None) == b.count(None)


def order_of(entries: Entries) -> tuple[float, ...]:
    """Return a key for the order in which statements stand in the source."""
    return tuple(-1 if entry is None else entry for entry in entries)


def last_position(scop: Scop) -> int:
    """Return the largest value of the first schedule dimension."""
    return int(greatest_coordinate(isl.Set.from_union_set(scop.schedule.range()), 0).to_python())


def direction(scop: Scop, statement: ScopStatement, k: int) -> int:
    """Return 1 where the statement's loop number k counts upwards, -1 where it counts downwards.

    A piece that the schedule of the SCoP does not name has that of the statement it was cut from.
    """
    schedules = {m.get_tuple_name(_DIM.in_): m for m in maps_of(scop.schedule)}
    schedule = next(schedules[name] for name in (statement.name, *statement.origins) if name in schedules)
    values = (aff.get_coefficient_val(_DIM.in_, k) for aff in _affs(schedule))
    return -1 if next((v.is_neg() for v in values if not v.is_zero()), False) else 1
