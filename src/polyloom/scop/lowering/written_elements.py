"""Whether a host program writes the elements that the static control part writes, no more and no fewer.

Not in the papers; see ``ir/verification/written_elements`` for the same question between two host programs.
"""

from __future__ import annotations

from functools import reduce

import islpy as isl

from polyloom.ir.host import HostProgram, Role
from polyloom.ir.verification.written_elements import Chosen, chosen_by_data, writes
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.polyhedra.loops.meaning import OPERATIONS, only_in_one, visited
from polyloom.scop.model import Scop, ScopStatement

_DIM = isl.dim_type


class WrongWrites(Exception):  # an internal fault: a pass lost instances, or made some up
    """The text names an element."""


def check_written(scop: Scop, program: HostProgram) -> None:
    """Raise ``WrongWrites`` where the program writes other elements than its part.

    Local buffers do not count, which passes expand, join and drop. Where isl cannot say, nothing is said.
    """
    names = {b.name for b in program.buffers if b.role is not Role.LOCAL}
    computed = {(s.target.array, k) for s in scop.statements for k, _ in s.target.computed}
    chosen = chosen_by_data(program.body) | computed
    try:
        with at_most(OPERATIONS):
            found = visited(writes(program.body, names, chosen), _context(scop, program), {})
            wrong = only_in_one(_written(scop, names, chosen), found)
    except (isl.Error, TooHardError, KeyError):
        return
    if wrong is not None:
        raise WrongWrites(f"elements written, {wrong}")


def _context(scop: Scop, program: HostProgram) -> isl.Set:
    """Return what is known of all parameters, those among them that only extents speak of."""
    names = ", ".join(p.name for p in program.parameters)
    return scop.context.align_params(isl.Set(f"[{names}] -> {{ : }}").get_space())


def _written(scop: Scop, names: set[str], chosen: Chosen) -> isl.UnionSet:
    found = [isl.UnionSet.from_set(_elements(s, chosen)) for s in scop.statements if s.target.array in names]
    empty = isl.UnionSet.empty(scop.context.get_space())
    return reduce(isl.UnionSet.union, found, empty).intersect_params(scop.context)


def _elements(statement: ScopStatement, chosen: Chosen) -> isl.Set:
    """Return the elements that a statement may write; an index that data choose is 0."""
    target = statement.target
    result = target.relation.intersect_domain(statement.domain).range()
    for k in (k for array, k in chosen if array == target.array):
        free = result.project_out(_DIM.set, k, 1).insert_dims(_DIM.set, k, 1)
        result = free.fix_val(_DIM.set, k, isl.Val(0))
    return result.set_tuple_name(target.array)
