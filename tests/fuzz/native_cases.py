"""Programs on the processor under schedules that no cost model would choose: proved, then built and run.

C programs are compared with the C compiler's, md_homs with the evaluator, bit for bit: sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
from cases import Evaluated, Outcome
from homs import ZOO, made_up, random_schedule

from polyloom.diagnostics import PolyloomError
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, MdHom, Role
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.tiles.pipeline import lower_scheduled
from polyloom.mdh.native.device import NativeDevice, choose, opened
from polyloom.mdh.native.entry import built
from polyloom.mdh.native.execution import address
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.tiling import TileFacts, has_tiles
from polyloom.mdh.tree.nodes import Function
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tree.verify import verify

LARGEST = 40
"""The largest value of a parameter of an md_hom."""


class OnNative(Evaluated):
    """C programs on the processor, each md_hom under a schedule at random or none."""

    batch = 10

    def carried_out(
        self, programs: Sequence[HostProgram], name: str, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        arrays = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}
        rng = Random(name)
        for program in programs:
            special = specialise(program, {p.name: int(arrays[p.name]) for p in program.parameters})
            run(special, wild_tree(special, rng), arrays)
        return arrays


class Scheduled:
    """md_homs of every kind, of sizes and under schedules at random, against the evaluator."""

    batch = 10

    def judged(self, seeds: Sequence[int]) -> Iterator[Outcome]:
        for seed in seeds:
            yield self._outcome(seed)

    def again(self, files: Mapping[str, bytes], seed: int) -> Outcome:
        return self._outcome(seed)

    def _outcome(self, seed: int) -> Outcome:
        rng = Random(seed)
        name = rng.choice(sorted(ZOO))
        program, known = ZOO[name]
        parameters = {n: rng.randint(1, LARGEST) for n in known}
        files = {"md_hom.txt": f"{name} {parameters}\n"}
        try:
            arrays = made_up(program, parameters, seed)
            inputs = {b.name: arrays[b.name] for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)}
            wanted = evaluate_host(program, parameters, inputs)
            special = specialise(program, parameters) if rng.random() < 0.5 else program
            run(special, wild_tree(special, rng), {**arrays, **parameters})
        except PolyloomError as refused:
            return Outcome(seed, "refused", refused.diagnostics[0].code, files)
        except Exception as fault:
            return Outcome(seed, "fault", f"{type(fault).__name__}: {fault}"[:2000], files)
        wrong = [n for n, value in wanted.items() if not np.array_equal(arrays[n], value)]
        return Outcome(seed, "wrong", " ".join(wrong), files) if wrong else Outcome(seed, "right")


def wild_tree(program: HostProgram, rng: Random) -> Function:
    """Return the tree of a program under schedules at random. Errors: ValueError where it is refused."""

    def schedule_of(hom: MdHom, around: HostProgram) -> Schedule | None:
        return wild(hom, around, rng) if has_tiles(hom) and rng.random() < 0.9 else None

    tree = program_tree(program, lower_scheduled(program, schedule_of, least=0))
    for function in (tree, final(tree)):
        if wrong := verify(function, asked(program)).wrong:
            raise ValueError(f"the verifier refuses: {wrong[0]}")
    return final(tree)


def wild(hom: MdHom, program: HostProgram, rng: Random) -> Schedule | None:
    """Return a schedule that the native back end may have, at random."""
    for _ in range(200):
        schedule = replace(random_schedule(hom, rng), items=(1,) * len(hom.extents), streaming=False)
        schedule = replace(schedule, strided=(False,) * len(hom.extents))
        if not problems(TileFacts(hom, schedule), program.by_name, device().model):
            return schedule
    return None


@cache
def device() -> NativeDevice:
    found = opened(choose("native", threads=2))
    assert isinstance(found, NativeDevice)
    return found


def run(program: HostProgram, function: Function, arrays: dict[str, Any]) -> None:
    """Build a function and run it on arrays, which it changes."""
    entry = built(function, device().compiler, device().threads)
    known = {p.name: int(arrays[p.name]) for p in program.parameters}
    lent = {}
    for buffer in program.buffers:
        if buffer.role is Role.LOCAL or buffer.name not in arrays:
            lent[buffer.name] = np.zeros(shape_of(buffer, known), buffer.type.dtype)
        else:
            lent[buffer.name] = np.array(arrays[buffer.name], order="C")
    entry.call([address(lent[p.name]) for p in function.parameters], [known[n] for n in function.integers])()
    for buffer in program.buffers:
        if buffer.role in (Role.OUTPUT, Role.UPDATED):
            np.copyto(arrays[buffer.name], lent[buffer.name].reshape(np.shape(arrays[buffer.name])))
