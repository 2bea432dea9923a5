"""The cost model of GPUs and what is chosen by it: registers, spills, room, groups; no GPU is needed."""

from __future__ import annotations

from dataclasses import replace

from homs import buffers_of, dot, hom_of, matmul
from scheduled_trees import copy, under

from polyloom.ir.host import HostProgram
from polyloom.mdh.cuda.architectures import architectures
from polyloom.mdh.schedule.choice import preferred_schedule
from polyloom.mdh.schedule.cost.cost_model import prediction
from polyloom.mdh.schedule.cost.gpu_cost import GpuModel
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.search_space import ScheduleSpace

H100 = architectures()["sm_90"]
PRODUCT = matmul(1024, 1024, 1024)
TILE = under(
    PRODUCT,
    group=(64, 64, 0),
    items=(16, 16, 1),
    local=(0, 0, 16),
    private=(4, 4, 1),
    item_order=(2, 0, 1),
    inputs=(copy(), copy()),
)


def space(program: HostProgram) -> ScheduleSpace:
    return ScheduleSpace(hom=hom_of(program), buffers=buffers_of(program), device=H100)


def model(program: HostProgram, schedule: Schedule) -> GpuModel:
    found = space(program)
    assert found.is_valid(schedule), schedule
    expected = prediction(found.facts(schedule), found.reads, H100)
    assert isinstance(expected, GpuModel)
    return expected


def test_totals_take_registers_and_what_a_thread_lacks_is_priced() -> None:
    small = model(PRODUCT, TILE)
    large = model(PRODUCT, replace(TILE, group=(128, 128, 0), private=(8, 8, 1)))
    assert large.registers.needed > small.registers.needed + 30
    # 1024 threads have 64 registers each: 64 totals do not fit
    crowded = model(PRODUCT, replace(TILE, items=(32, 32, 1), group=(256, 256, 0), private=(8, 8, 1)))
    assert crowded.registers.limit(H100.unit) == 64 < crowded.registers.needed
    assert crowded._group_cycles > 4 * 1.5 * large._group_cycles, "a group of four times the points"


def test_a_second_stage_hides_waits_and_takes_registers() -> None:
    once, twice = model(PRODUCT, TILE), model(PRODUCT, replace(TILE, stages=2))
    assert twice._alone < once._alone
    assert twice.registers.needed == once.registers.needed + 2 * 64 * 16 // 256


def test_large_products_are_in_tiles_that_are_copied() -> None:
    schedule = preferred_schedule(space(PRODUCT))
    found = model(PRODUCT, schedule)
    assert found.facts.total_items >= 64 and found.sizes.all_groups >= 0.9 * H100.compute_units
    assert found.registers.needed <= found.registers.limit(H100.unit)
    assert all(found.sizes.plan(k) is not None for k in range(2))


def test_a_long_sum_is_shared_by_groups_and_neighbours_read_neighbours() -> None:
    program = dot(1 << 22)
    found = model(program, preferred_schedule(space(program)))
    assert found.facts.split and found.sizes.all_groups >= H100.compute_units
    assert found.facts.total_items % H100.lanes == 0
