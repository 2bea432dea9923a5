"""Schedules as data, what makes one invalid, the space of the valid ones, and the cost model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest
from homs import (
    ZOO,
    at_most,
    best_record,
    buffers_of,
    convolution,
    device,
    gemm,
    hom_of,
    matmul,
    shifted,
    stencil,
    wild_schedule,
)

from polyloom.ir.host import HostProgram
from polyloom.mdh.device.devices import DeviceKind
from polyloom.mdh.lowering.lower import IllegalSchedule, emit_md_hom
from polyloom.mdh.native.device import choose
from polyloom.mdh.schedule.choice import (
    default_schedule,
    legal_schedule,
    one_kernel_schedule,
    preferred_schedule,
)
from polyloom.mdh.schedule.cost.loop_sizes import Reads
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule, plain_schedule, schedule_from_text
from polyloom.mdh.schedule.search_space import ScheduleSpace, space_of
from polyloom.mdh.schedule.tiling import TileFacts, has_tiles
from polyloom.mdh.tuning.adaptation import seeded_space
from polyloom.mdh.tuning.schedule_lookup import emit_with_text
from polyloom.polyhedra.loops.tree import Number

PLAIN = plain_schedule(3, 2)
MODEL = device().model


def reasons(program: HostProgram, schedule: Schedule) -> str:
    return "; ".join(problems(TileFacts(hom_of(program), schedule), buffers_of(program), MODEL))


@pytest.mark.parametrize("seed", range(20))
def test_a_schedule_comes_back_from_its_text(seed: int) -> None:
    schedule = wild_schedule(matmul(17, 37, 23), Random(seed))
    assert schedule_from_text(schedule.text()) == schedule
    assert schedule_from_text(schedule.text()).text() == schedule.text()
    assert schedule.text() is schedule.text()  # the seeds of every later choice are compared by it


@pytest.mark.parametrize("text", ["{}", '{"group": [1]}', "[]", "nonsense"])
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        schedule_from_text(text)


def test_every_limit_has_a_reason() -> None:
    program = matmul(64, 64, 64)
    copied = (Caching(), Caching(Memory.LOCAL))
    assert not reasons(program, PLAIN)
    assert "permutation" in reasons(program, replace(PLAIN, local_order=(0, 0, 1)))
    assert "dimensions" in reasons(program, plain_schedule(2, 2))
    assert "work-items in a group" in reasons(program, replace(PLAIN, items=(64, 64, 2)))
    assert "no multiple" in reasons(program, replace(PLAIN, local=(5, 0, 0), private=(2, 1, 1)))
    assert "no multiple" in reasons(program, replace(PLAIN, group=(5, 0, 0), private=(2, 1, 1)))
    assert "register tile" in reasons(program, replace(PLAIN, private=(16, 16, 1)))
    assert "written out" in reasons(program, replace(PLAIN, private=(8, 8, 128)))
    assert "shared by work-items or by vectors" in reasons(
        program, replace(PLAIN, vector=2, width=4, items=(1, 1, 2))
    )
    assert "known size" in reasons(matmul("M", "N", "K"), replace(PLAIN, inputs=copied))
    assert "local memory" in reasons(matmul(64, 1024, 1024), replace(PLAIN, inputs=copied))


def test_conditions_have_reasons() -> None:
    copied = (Caching(Memory.LOCAL), Caching(), Caching(), Caching())
    triangle = gemm(13, 18, 21, guard=at_most("k", "i"))
    plain = plain_schedule(3, 4)
    assert "guard" in reasons(triangle, replace(plain, vector=2, width=4))
    assert not reasons(triangle, replace(plain, inputs=copied))
    small = tuple(replace(b, shape=(Number(13),) * 2) if b.name == "A" else b for b in triangle.buffers)
    assert "condition" in reasons(replace(triangle, buffers=small), replace(plain, inputs=copied))
    assert "condition" in reasons(shifted(7, 33), replace(plain_schedule(2, 1), inputs=copied[:1]))


def test_an_operator_that_does_not_commute_keeps_the_order() -> None:
    program, plain = best_record(9, 41, commutative=False), plain_schedule(2, 1)
    assert "does not commute" in reasons(program, replace(plain, vector=1, width=4))
    assert "does not commute" in reasons(program, replace(plain, follow=0))
    assert not reasons(program, replace(plain, group=(0, 8)))


@pytest.mark.parametrize("name", ZOO)
def test_the_space_holds_valid_schedules_only(name: str) -> None:
    program, _ = ZOO[name]
    space, rng = space_of(hom_of(program), program, MODEL), Random(3)
    for _ in range(10):
        schedule = space.sample(rng)
        assert space.is_valid(schedule)
        assert all(space.is_valid(each) for each in space.neighbours(schedule, rng))
        assert space.predicted(schedule) > 0


def test_the_space_is_not_one_schedule() -> None:
    program = matmul(1024, 1024, 1024)
    space, rng = space_of(hom_of(program), program, MODEL), Random(0)
    drawn = [space.sample(rng) for _ in range(60)]
    assert len(set(drawn)) > 55
    assert {s.vector for s in drawn} >= {1, 2}
    assert any(c.memory is Memory.LOCAL for s in drawn for c in s.inputs)
    assert len(space.neighbours(drawn[0], rng)) > 4


def test_the_default_is_the_same_every_time() -> None:
    program = stencil(64, 64)
    first = default_schedule(hom_of(program), program.by_name, MODEL)
    assert default_schedule(hom_of(program), program.by_name, MODEL) == first


def test_a_seed_is_where_the_choice_starts() -> None:
    given = gemm(96, 80, 64)
    found = default_schedule(hom_of(given), given.by_name, MODEL)
    similar = gemm(97, 80, 70)
    seeded = seeded_space(hom_of(similar), similar, MODEL, [found.text(), "nonsense"])
    seed = seeded.adapted(found.text())
    assert seed is not None
    assert seeded.predicted(seeded.default()) <= seeded.predicted(seed)
    assert seeded.default() == preferred_schedule(seeded.space, [seed])


def test_vectors_run_where_neighbours_are() -> None:
    """Of what is read along vectors, neighbours lie together, or are copied so."""
    for program in (convolution(7, 7, 64, 64, 3, 3), matmul(256, 256, 256)):
        hom = hom_of(program)
        chosen = default_schedule(hom, program.by_name, MODEL)
        assert chosen.vector is not None
        for access, caching in zip(Reads(hom, program.by_name).inputs, chosen.inputs, strict=True):
            assert access is not None
            together = not access.uses(chosen.vector) or access.is_unit(chosen.vector)
            assert together or caching.memory is Memory.LOCAL


def looked_at(program: HostProgram) -> int:
    """Return how many schedules a search looks at; the plain one is there before."""
    space = space_of(hom_of(program), program, choose("native", threads=1))
    preferred_schedule(space)
    return len(space.known)


def test_a_search_takes_no_longer_than_it_could_save() -> None:
    assert looked_at(matmul(4, 16, 4)) <= 3  # nothing beats launching it
    assert looked_at(matmul(16, 64, 16)) < 12
    assert looked_at(matmul(512, 512, 512)) > 60


@pytest.mark.parametrize(("share", "taken"), [(0.97, False), (0.9, True)])
def test_what_saves_less_than_the_model_can_tell_is_not_taken(share: float, taken: bool) -> None:
    usual = PLAIN
    drawn = replace(usual, private=(2, 1, 1))

    class Space(ScheduleSpace):
        unbeaten = 1e-9

        def designs(self) -> Iterator[Schedule]:
            yield usual

        def sample(self, rng: Random) -> Schedule:
            return drawn

        def neighbours(self, schedule: Schedule, rng: Random) -> Sequence[Schedule]:
            return [drawn]

        def predicted(self, schedule: Schedule) -> float:
            return 1e-3 * (share if schedule == drawn else 1.0)

        at_least = predicted

    program = matmul(8, 8, 8)
    space = Space(hom=hom_of(program), buffers=buffers_of(program), device=MODEL)
    assert (preferred_schedule(space) == drawn) == taken


def test_one_thread_waits_for_no_other() -> None:
    program = matmul(64, 64, 64)
    space = space_of(hom_of(program), program, choose("native", threads=1))
    whole = space.plain
    halves = replace(whole, group=(32, *whole.group[1:]))
    assert space.predicted(halves) == pytest.approx(space.predicted(whole), rel=0.01)


@pytest.mark.parametrize("program", [matmul(96, 80, 64), convolution(9, 20, 18, 4, 3, 3), stencil(640, 900)])
@pytest.mark.parametrize("threads", [1, 4])
def test_nothing_beats_the_bound_of_the_search(program: HostProgram, threads: int) -> None:
    space = space_of(hom_of(program), program, choose("native", threads=threads))
    rng = Random(3)
    drawn = [space.sample(rng) for _ in range(60)]
    near = [n for s in sorted(drawn, key=space.predicted)[:4] for n in space.neighbours(s, rng)]
    every = [preferred_schedule(space), *space.designs(), *drawn, *near]
    assert space.unbeaten <= min(map(space.predicted, every)) <= 4.5 * space.unbeaten


def test_work_items_on_a_gpu() -> None:
    """No GPU is needed: its schedules are drawn for a made-up model and run on the CPU elsewhere."""
    gpu = replace(MODEL, kind=DeviceKind.GPU, lanes=32, compute_units=132, vector_bytes=16)
    program = matmul(256, 256, 256)
    space = ScheduleSpace(hom=hom_of(program), buffers=buffers_of(program), device=gpu)
    schedule = preferred_schedule(space)
    facts = space.facts(schedule)
    assert space.is_valid(schedule) and facts.total_items >= 32


def test_the_model_knows_blocking_from_none() -> None:
    program = matmul(1024, 1024, 1024)
    space = space_of(hom_of(program), program, MODEL)
    blocked = replace(
        PLAIN,
        group=(0, 64, 0),
        local=(0, 32, 0),
        private=(8, 2, 1),
        vector=1,
        width=16,
        unrolled_order=(2, 0, 1),
        inputs=(Caching(), Caching(Memory.LOCAL)),
    )
    assert space.predicted(blocked) * 8 < space.predicted(PLAIN)
    assert space.predicted(blocked) < space.predicted(replace(blocked, inputs=(Caching(), Caching())))


def test_kernels_come_from_a_text_too() -> None:
    program = matmul(8, 8, 8)
    launch = emit_with_text(hom_of(program), program, MODEL, PLAIN.text())
    assert has_tiles(hom_of(program)) and "matmul" in launch.kernels[0].source


def test_an_illegal_schedule_is_refused_by_lowering_and_replaced_by_choice() -> None:
    program, illegal = matmul(8, 8, 8), replace(PLAIN, local=(3, 0, 0), private=(2, 1, 1))
    hom, buffers = hom_of(program), program.by_name
    with pytest.raises(IllegalSchedule, match="cache tiles of 3 are no multiple of register tiles of 2"):
        emit_md_hom(hom, program, MODEL, illegal, one_kernel_schedule)
    assert legal_schedule(PLAIN, hom, buffers, MODEL) == PLAIN
    assert legal_schedule(illegal, hom, buffers, MODEL) == default_schedule(hom, buffers, MODEL)
