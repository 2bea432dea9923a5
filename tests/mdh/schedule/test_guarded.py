"""Which part of boxes conditions leave, and what the cost model makes of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import ceil

import pytest
from homs import at_most, buffers_of, gemm, hom_of
from scheduled_trees import compare

from polyloom.ir.host import HostProgram, MdHom
from polyloom.mdh.device.costs import CpuCosts
from polyloom.mdh.native.device import choose
from polyloom.mdh.schedule.choice import default_schedule
from polyloom.mdh.schedule.cost.compute_cost import CycleModel, StepModel
from polyloom.mdh.schedule.cost.guarded import Guarded
from polyloom.mdh.schedule.cost.loop_sizes import LoopSizes
from polyloom.mdh.schedule.search_space import ScheduleSpace
from polyloom.mdh.schedule.tiling import parts_vectors
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

N = 60


def space(program: HostProgram) -> ScheduleSpace:
    device = replace(choose("native", threads=1), vector_bytes=32)
    return ScheduleSpace(hom=hom_of(program), buffers=buffers_of(program), device=device)


def counted(hom: MdHom, box: tuple[int, ...]) -> tuple[float, float]:
    """Return the shares for ``k <= i`` by looking at every box."""
    names, some, whole, boxes = hom.iterators, 0, 0, 0
    i, k = names.index("i"), names.index("k")
    for origin in product(*(range(ceil(N / size)) for size in box)):
        low = [at * size for at, size in zip(origin, box, strict=True)]
        high = [min(at + size, N) - 1 for at, size in zip(low, box, strict=True)]
        boxes += 1
        some += low[k] <= high[i]
        whole += high[k] <= low[i]
    return some / boxes, whole / boxes


@pytest.mark.parametrize("box", [(1, N, 1), (10, N, 1), (10, N, 10), (N, N, N), (20, N, 5)])
def test_shares_are_those_of_the_boxes(box: tuple[int, int, int]) -> None:
    hom = hom_of(gemm(N, N, N, guard=at_most("k", "i")))
    sizes = tuple(box[("i", "j", "k").index(name)] for name in hom.iterators)
    found = Guarded(hom, (N, N, N)).shares(sizes)
    assert (found.some, found.whole) == pytest.approx(counted(hom, sizes), abs=0.03)


def test_without_conditions_everything_is_inside() -> None:
    found = Guarded(hom_of(gemm(N, N, N)), (N, N, N)).shares((7, 7, 7))
    assert found.some == found.whole == 1.0


def test_what_other_names_decide_is_left_out() -> None:
    hom = hom_of(gemm(N, N, N, guard=at_most("k", "step")))
    assert Guarded(hom, (N, N, N)).shares((1, 1, 1)).some == 1.0


def test_half_of_the_steps_are_counted_and_edges_more() -> None:
    """A triangle costs half of its box, as its loops end at their bounds; a tile's cut rows cost more."""
    whole, half = (space(gemm(600, N, 600, **guard)) for guard in ({}, {"guard": at_most("k", "i")}))
    costs = half.device.costs
    assert isinstance(costs.kernels, CpuCosts)
    tile = replace(half.plain, private=tuple(6 if n == "i" else 1 for n in half.hom.iterators))
    models = [
        CycleModel(StepModel(LoopSizes(s.facts(tile), s.reads), costs.instructions, 32), costs.kernels)
        for s in (whole, half)
    ]
    assert 0.505 < models[1].steps / models[0].steps < 0.55
    assert models[1].steps > models[1].sizes.steps * models[1].sizes.of_steps.some
    assert models[0].step_cycles == models[1].step_cycles


@pytest.mark.parametrize(
    ("guard", "order", "apart"),
    [
        (("k", "i"), "ijk", "i"),
        (("j", "i"), "ijk", "i"),
        (("j", "i"), "jik", "j"),
        (("i", "j"), "jik", "j"),
        (("j", "step"), "jik", ""),
    ],
)
def test_whose_points_have_parts_of_loops_by_themselves(
    guard: tuple[str, str], order: str, apart: str
) -> None:
    """The outer one of two that a condition speaks of: the inner one's loop has it as a bound."""
    hom = hom_of(gemm(N, N, N, guard=at_most(*guard)))
    found = Guarded(hom, (N, N, N))
    places = [hom.iterators.index(name) for name in order]
    assert [n for n in "ijk" if found.is_apart(places, hom.iterators.index(n))] == list(apart)


@pytest.mark.parametrize("smaller", ["i", "j"])
def test_vectors_of_a_triangle_lie_along_its_rows(smaller: str) -> None:
    """Lanes of vectors along its columns would end one by one: a product took three times as long."""
    larger = {"i": "j", "j": "i"}[smaller]
    program = gemm(1200, 1200, 1400, guard=at_most(smaller, larger))
    hom = hom_of(program)
    schedule = default_schedule(hom, buffers_of(program), choose("native", threads=2))
    assert schedule.vector is not None
    assert schedule.width > 1
    reduced = [d for d, o in enumerate(hom.combine) if o.combiner is not None]
    nested = [*(d for d in schedule.private_order if d not in reduced), *reduced]
    assert not Guarded(hom, (1200, 1200, 1400)).is_apart(nested, schedule.vector)


def odd(name: str) -> IntExpression:
    return Operation("==", (Operation("mod", (Name(name), Number(2))), Number(1)))


def test_a_condition_that_is_no_bound_is_tested_at_each_point() -> None:
    found = space(gemm(N, N, N, guard=odd("k")))
    sizes = LoopSizes(found.facts(found.plain), found.reads)
    assert sizes.is_tested
    bounded = space(gemm(N, N, N, guard=at_most("k", "i")))
    assert not LoopSizes(bounded.facts(bounded.plain), bounded.reads).is_tested


def test_vectors_run_along_kept_dimensions_whose_bounds_the_guard_is() -> None:
    program = gemm(13, 21, 7, guard=at_most("i", "j"))
    found = space(program)
    facts, names = found.plain_facts, found.hom.iterators
    assert not parts_vectors(facts, names.index("j"))
    assert parts_vectors(space(gemm(N, N, N, guard=odd("j"))).plain_facts, names.index("j"))
    assert parts_vectors(space(gemm(N, N, N, guard=at_most("k", "j"))).plain_facts, names.index("k"))
    assert names.index("j") in found.vector_choices
    along = [s for s in found.designs() if s.vector == names.index("j")]
    assert along
    for schedule in (along[0], along[-1]):
        compare(program, schedule, {})
