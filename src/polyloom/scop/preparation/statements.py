"""Parts with statements left out or put in, and statements as if they stood in the loops of others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import reduce

import islpy as isl

from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.dependence.nesting import depth_of, schedules
from polyloom.scop.model import Scop, ScopAccess, ScopStatement

_DIM = isl.dim_type


def without(scop: Scop, names: Collection[str]) -> Scop:
    """Return a part without some of its statements."""
    kept = [m for m in maps_of(scop.schedule) if m.get_tuple_name(_DIM.in_) not in names]
    schedule = reduce(
        isl.UnionMap.union,
        (isl.UnionMap.from_map(m) for m in kept),
        isl.UnionMap.empty(scop.schedule.get_space()),
    )
    statements = tuple(s for s in scop.statements if s.name not in names)
    return replace(scop, schedule=schedule, statements=statements)


def beside(scop: Scop, statement: ScopStatement, new: ScopStatement, step: int) -> isl.UnionMap:
    """Return the schedule with a statement more, right before (-1) or behind (1) another one in its loops.

    It may run for fewer iterations than that.
    """
    place = depth_of(schedules(scop)[statement.name])
    maps = maps_of(scop.schedule)
    times = [f"t{k}" for k in range(maps[0].dim(_DIM.out))]

    def at_place(there: str) -> isl.Map:
        moved = (there.format(t) if k == place else t for k, t in enumerate(times))
        return isl.Map(f"{{ [{', '.join(times)}] -> [{', '.join(moved)}] }}")

    found = [m.apply_range(at_place("2 {}")) for m in maps]
    own = next(m for m in found if m.get_tuple_name(_DIM.in_) == statement.name)
    moved = own.apply_range(at_place(f"{{}} + {step}")).set_tuple_name(_DIM.in_, new.name)
    found.append(moved.intersect_domain(new.domain))
    return reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, found))


def lifted(giving: ScopStatement, user: ScopStatement) -> ScopStatement:
    """Return a statement as if it stood in the loops of one inside: it gives there what it gives outside."""
    if len(user.iterators) == len(giving.iterators):
        return giving
    outwards = _outwards(giving, user)
    domain = giving.domain.apply(outwards.reverse()).set_tuple_name(giving.name)

    def moved(access: ScopAccess) -> ScopAccess:
        relation = lifted_access(access, giving, user).set_tuple_name(_DIM.in_, giving.name)
        return replace(access, relation=relation)

    return replace(
        giving,
        domain=domain,
        iterators=user.iterators,
        loops=user.loops,
        target=moved(giving.target),
        reads=tuple(map(moved, giving.reads)),
    )


def lifted_access(access: ScopAccess, giving: ScopStatement, inside: ScopStatement) -> isl.Map:
    """Return what a statement accesses in the iterations around those of another one, by these."""
    return _outwards(giving, inside).apply_range(access.relation)


def _outwards(giving: ScopStatement, inside: ScopStatement) -> isl.Map:
    """Return the iteration of a statement for each of another one in loops inside."""
    depth, all_ = len(giving.iterators), len(inside.iterators)
    whole = isl.Map.identity(inside.domain.get_space().map_from_set())
    return whole.project_out(_DIM.out, depth, all_ - depth).set_tuple_name(_DIM.out, giving.name)
