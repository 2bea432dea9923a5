"""A role as it is priced: one of its PEs, and what arrives there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import islpy as isl

from polyloom.polyhedra.binding import PE_PARAMETERS
from polyloom.polyhedra.bounds import greatest_coordinate, least_coordinate
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.pe_program.tree import DataTask
from polyloom.wafer.placement.cost.code import Pricer
from polyloom.wafer.program.wafer_program import RoleProgram

_DIM = isl.dim_type
_INDEX_SAMPLES = 5


def pricer_at(machine: Machine, role: RoleProgram, pe: tuple[int, int]) -> Pricer:
    """Return what prices a role's code on one of its PEs."""
    return Pricer(
        machine,
        dict(zip(PE_PARAMETERS, pe, strict=True)),
        {array.name: array for array in role.code.arrays},
        {f.name: f.offset for f in role.memory},
    )


def ends_of(role: RoleProgram) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the lexicographically first and last PE of a role."""
    return _point(role.role.pes.lexmin()), _point(role.role.pes.lexmax())


def _point(pes: isl.Set) -> tuple[int, int]:
    point = pes.sample_point()
    x, y = (int(point.get_coordinate_val(_DIM.set, k).to_python()) for k in range(2))
    return x, y


def on_pe(indices: isl.Set, pe: tuple[int, int]) -> isl.Set:
    """Return indices that depend on the parameters ``PE_X, PE_Y`` on one PE."""
    for name, value in zip(PE_PARAMETERS, pe, strict=True):
        at = indices.find_dim_by_name(_DIM.param, name)
        if at >= 0:
            indices = indices.fix_val(_DIM.param, at, isl.Val(value))
    return indices


def ranges_of(indices: isl.Set) -> list[range]:
    """Return the values of each index, with their stride; nothing where there are no points."""
    if indices.is_empty():
        return []
    return [_range(indices, k) for k in range(indices.dim(_DIM.set))]


def _range(indices: isl.Set, k: int) -> range:
    low, high, step = least_coordinate(indices, k), greatest_coordinate(indices, k), indices.get_stride(k)
    return range(int(low.to_python()), int(high.to_python()) + 1, max(1, int(step.to_python())))


def data_task_cycles(pricer: Pricer, task: DataTask, names: Sequence[str], indices: Sequence[range]) -> float:
    """Return the cycles of all elements and ends of chunk of a sparse stream that arrive on a PE.

    ``names``: the variables of the outer indices. A few indices stand for all.
    """
    if not indices:
        return 0.0
    dispatch = pricer.machine.data_task_dispatch
    chunks = math.prod(1 + index[-1] for index in indices[:-1])
    count = math.prod(len(index) for index in indices)
    sampled = 0.0
    for n in range(_INDEX_SAMPLES):
        for name, index in zip([*names, "index"], indices, strict=True):
            pricer.environment[name] = index[(len(index) - 1) * n // (_INDEX_SAMPLES - 1)]
        sampled += pricer.code(task.body)
    ends = chunks * (dispatch + pricer.code(task.end)) + pricer.once(task.end)
    return count * (dispatch + sampled / _INDEX_SAMPLES) + ends
