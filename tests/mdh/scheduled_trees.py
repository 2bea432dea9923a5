"""md_homs under schedules as kernel trees, beside what the md_homs mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

import numpy as np
from homs import buffers_of, hom_of, made_up, random_schedule

from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, MdHom, Role
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.iterator_names import distinct_iterators
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.tiles.pipeline import Second, scheduled
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule, plain_schedule
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.mdh.tree.evaluate import evaluate, in_order, shuffled
from polyloom.mdh.tree.nodes import Code, Function
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tree.text import function_text


def tree(program: HostProgram, schedule: Schedule, second: Second | None = None) -> Function:
    buffers = buffers_of(program)

    def lower(hom: MdHom) -> Code:
        return scheduled(distinct_iterators(hom, buffers), buffers, schedule, second=second)

    return program_tree(program, lower)


def under(program: HostProgram, **changes: object) -> Schedule:
    hom = hom_of(program)
    return replace(plain_schedule(len(hom.extents), len(hom.inputs)), **changes)  # type: ignore[arg-type]


def copy(*axes: int, panel: bool = False) -> Caching:
    return Caching(Memory.LOCAL, axes, 0, panel)


def compare(
    program: HostProgram,
    schedule: Schedule,
    parameters: Mapping[str, int],
    seed: int = 0,
    second: Second | None = None,
) -> None:
    """Compare with the evaluator of md_homs: as scheduled, and with registers, in other orders."""
    arrays = made_up(program, parameters, seed)
    inputs = {b.name: arrays[b.name] for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)}
    wanted = evaluate_host(program, parameters, inputs)
    function = tree(program, schedule, second)
    early = evaluate(function, arrays, parameters, order=in_order)
    late = evaluate(final(function), arrays, parameters, order=shuffled(seed), together=True)
    for name, value in wanted.items():
        text = f"{schedule.text()}\n{function_text(function)}"
        np.testing.assert_array_equal(early[name], value, err_msg=text)
        np.testing.assert_array_equal(late[name], value, err_msg=text)


def legal(
    program: HostProgram,
    seed: int,
    device: DeviceModel,
    change: Callable[[Schedule], Schedule],
    wanted: Callable[[TileFacts], bool] = lambda facts: True,
) -> Schedule | None:
    """Return a legal schedule that no cost model would choose; None where there seems to be none."""
    hom, rng = hom_of(program), Random(seed)
    for _ in range(1000):
        facts = TileFacts(hom, change(random_schedule(hom, rng)))
        if not problems(facts, buffers_of(program), device) and wanted(facts):
            return facts.schedule
    return None
