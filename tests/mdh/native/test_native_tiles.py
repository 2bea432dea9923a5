"""Scheduled kernel trees as C: what the C compiler makes of them is what the evaluator gives."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from homs import ZOO, buffers_of, dot, hom_of, made_up, random_schedule

from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, Role
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.tiles.pipeline import lower_scheduled
from polyloom.mdh.native.device import NativeDevice, choose, opened
from polyloom.mdh.native.entry import built
from polyloom.mdh.native.execution import address
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.schedules import Schedule, plain_schedule
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.mdh.tree.registers import final


def check(program: HostProgram, schedule: Schedule, parameters: dict[str, int], seed: int) -> None:
    device = opened(choose("native", threads=2))
    assert isinstance(device, NativeDevice)
    arrays = made_up(program, parameters, seed)
    inputs = {b.name: arrays[b.name] for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)}
    wanted = evaluate_host(program, parameters, inputs)
    function = final(program_tree(program, lower_scheduled(program, lambda hom, around: schedule, least=0)))
    entry = built(function, device.compiler, device.threads)
    call = entry.call(
        [address(arrays[p.name]) for p in function.parameters], [parameters[n] for n in function.integers]
    )
    call()
    for name, value in wanted.items():
        np.testing.assert_array_equal(arrays[name], value, err_msg=schedule.text())


def wild(program: HostProgram, seed: int) -> Schedule | None:
    """Return a schedule that the native back end may have, at random."""
    hom, rng, model = hom_of(program), Random(seed), choose("native", threads=2)
    for _ in range(1000):
        schedule = replace(random_schedule(hom, rng), items=(1,) * len(hom.extents), streaming=False)
        schedule = replace(schedule, strided=(False,) * len(hom.extents))
        if not problems(TileFacts(hom, schedule), buffers_of(program), model):
            return schedule
    return None


def test_totals_before_a_rest_of_unknown_length() -> None:
    schedule = replace(plain_schedule(1, 2), private=(4,), vector=0, width=8)
    check(dot("N"), schedule, {"N": 333}, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_wild_schedules_in_c(name: str) -> None:
    program, parameters = ZOO[name]
    for seed in range(8):
        if (schedule := wild(program, seed)) is not None:
            check(program, schedule, parameters, seed)
