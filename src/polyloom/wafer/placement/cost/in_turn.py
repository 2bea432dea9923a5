"""How long PEs of a line wait for each other where filters and switches of routers bring each its own.

A PE whose part of a stream comes late gives its results late. Where the PEs send in that order, the first
ones have sent theirs of the first round when the last one has its own; else all of a line leaves behind each
other, as in all further rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import islpy as isl

from polyloom.wafer.codegen.turns import turn_cycles
from polyloom.wafer.dataflow.reductions import Chain, Part
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.placement.cost.code import HALF_WAVELET
from polyloom.wafer.placement.cost.integer_values import value_of
from polyloom.wafer.placement.cost.role import ends_of, on_pe, pricer_at, ranges_of
from polyloom.wafer.program.wafer_program import RoleProgram, WaferProgram
from polyloom.wafer.roles.activities import RoleActivities
from polyloom.wafer.roles.work import StreamOnRole

_Point = tuple[int, int]


def filtered(machine: Machine, role: RoleProgram, here: StreamOnRole) -> float:
    """Return how long a PE of a role waits for elements of a stream that its router keeps from it."""
    return max((_wait(machine, role, here, pe) for pe in ends_of(role)), default=0.0)


def turns_cycles(program: WaferProgram, chain: Chain) -> float:
    """Return how long the last PE of a line waits until those before it have sent their elements."""
    paired = any(group.tensor == chain.tensor and group.block is not None for group in program.outputs)
    return _turns(program.machine, chain, program.roles, paired=paired)


def least_turns_cycles(machine: Machine, chain: Chain, roles: Sequence[RoleProgram]) -> float:
    """Return how long that is at least; ``roles``: those of both ends of a line among them."""
    pairs = machine.wavelet_elements > 1 and chain.type.size == HALF_WAVELET
    return _turns(machine, chain, roles, paired=pairs)


def turning_ends(chain: Chain) -> isl.Set:
    """Return the PEs of a line that send first and last."""
    far, near = ends_of_line(chain)
    return point_set(far).union(point_set(near))


def ends_of_line(chain: Chain) -> tuple[_Point, _Point]:
    """Return the PEs of a line that send first and last: those that are farthest from each other."""
    axis, ahead = (0 if chain.side.step[0] else 1), sum(chain.side.step) > 0
    ends = [_point(chain.contributors.lexmin()), _point(chain.contributors.lexmax())]
    far, near = ends if ahead else ends[::-1]
    return ((far[0], near[1]) if axis == 0 else (near[0], far[1])), near


def _turns(machine: Machine, chain: Chain, roles: Sequence[RoleProgram], *, paired: bool) -> float:
    axis = 0 if chain.side.step[0] else 1
    far, near = ends_of_line(chain)
    indices = ranges_of(on_pe(chain.positions(Part.OWN), near))
    rounds = math.prod(len(r) for r in indices[: chain.turns])
    own = math.prod(len(r) for r in indices) / (2 if paired else 1)
    before = abs(near[axis] - far[axis])
    turns = before * (own / max(rounds, 1) + turn_cycles(machine))
    late = max(0.0, _late(machine, roles, near) - _late(machine, roles, far))
    out = before * machine.hop_latency + machine.ramp_latency
    return max(0.0, turns - late) + max(0, rounds - 1) * turns + out


def _late(machine: Machine, roles: Sequence[RoleProgram], pe: _Point) -> float:
    """Return how long a PE waits for what filters keep from it."""
    for role in roles:
        if isinstance(role.work, RoleActivities) and point_set(pe).is_subset(role.role.pes):
            return max((_wait(machine, role, here, pe) for here in role.work.streams), default=0.0)
    return 0.0


def point_set(pe: _Point) -> isl.Set:
    """Return ``{ PE[x, y] }`` with one PE."""
    return isl.Set(f"{{ PE[{pe[0]}, {pe[1]}] }}")


def _wait(machine: Machine, role: RoleProgram, here: StreamOnRole, pe: _Point) -> float:
    one = next((f for f in role.code.filters if f.queue == here.queue), None)
    if one is None:
        return 0.0
    known = pricer_at(machine, role, pe).environment
    skip, keep, period = (value_of(e, known) for e in (one.skip, one.keep, one.period))
    elements = math.prod(len(r) for r in ranges_of(on_pe(here.stream.indices(), pe)))
    rounds = max(1, elements // period)
    return (skip + (rounds - 1) * (period - keep)) / (2 if one.pairs else 1)


def _point(pes: isl.Set) -> _Point:
    point = pes.sample_point()
    x, y = (int(point.get_coordinate_val(isl.dim_type.set, k).to_python()) for k in range(2))
    return x, y
