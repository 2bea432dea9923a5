"""What the cost model of processors says of schedules that differ in one thing."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import pytest
from homs import buffers_of, convolution, hom_of, jacobi, matmul, row_maximum
from test_designs import with_constants

from polyloom.ir.host import HostProgram, Index, View
from polyloom.ir.types import ElementType
from polyloom.mdh.device.costs import CpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.native.device import choose
from polyloom.mdh.schedule.addresses import places
from polyloom.mdh.schedule.cost.compute_cost import StepModel
from polyloom.mdh.schedule.cost.loop_sizes import LoopSizes, Reads
from polyloom.mdh.schedule.cost.memory_cost import CacheModel, MemoryModel
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule
from polyloom.mdh.schedule.search_space import ScheduleSpace
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.polyhedra.loops.tree import Number

AVX2 = replace(choose("native", threads=1), vector_bytes=32, caches=(2**15, 2**19, 2**25), ways=(8, 8, 16))
"""16 registers of eight floats."""


def space(program: HostProgram, device: DeviceModel = AVX2) -> ScheduleSpace:
    return ScheduleSpace(hom=hom_of(program), buffers=buffers_of(program), device=device)


def tiles(program: HostProgram, private: tuple[int, ...]) -> float:
    """Return the expected seconds in register tiles, vectors along the second dimension."""
    found = space(program)
    return found.predicted(replace(found.plain, private=private, vector=1, width=8))


def in_steps(program: HostProgram, step: int, shape: tuple[int, ...]) -> HostProgram:
    """Return a convolution whose windows of one point are some points apart, in an image of a shape."""
    hom = hom_of(program)
    image = hom.inputs[0]
    indices = [i for i in image.indices if isinstance(i, Index)]
    apart = [
        replace(i, coefficients=tuple(c * (step if axis < 2 else 1) for c in i.coefficients))
        for axis, i in enumerate(indices)
    ]
    changed = replace(hom, inputs=(View(image.buffer, tuple(apart)), *hom.inputs[1:]))
    sizes = tuple(map(Number, shape))
    buffers = (replace(b, shape=sizes) if b.name == image.buffer else b for b in program.buffers)
    return replace(program, body=(changed,), buffers=tuple(buffers))


def caches(program: HostProgram) -> CacheModel:
    hom, buffers = hom_of(program), buffers_of(program)
    channels_outside = replace(space(program).plain, private_order=(2, 0, 1, 3, 4, 5))
    sizes = LoopSizes(TileFacts(hom, channels_outside), Reads(hom, buffers))
    costs = AVX2.costs
    assert isinstance(costs.kernels, CpuCosts)
    return CacheModel(MemoryModel(sizes, costs.memory), costs.kernels, AVX2.caches, AVX2.ways)


def test_places_between_steps_are_not_touched() -> None:
    assert places([(0, 2)], (7,)) == (7, 2)
    assert places([(0, 2), (1, 1)], (7, 3)) == (15, 1)
    assert places([(0, 1), (1, 4)], (2, 7)) == (14, 1)
    assert places([(0, 6), (1, 4)], (3, 2)) == (6, 2)
    assert places([(0, 3)], (1,)) == (1, 1)


def test_points_that_windows_leave_out_take_no_room_in_a_cache() -> None:
    """7 x 7 points of 1024 channels are 200 KB, also every second one of 13 x 13: blocks save nothing."""
    every = with_constants(convolution(7, 7, 64, 1024, 1, 1))
    second = in_steps(every, 2, (14, 14, 1024))
    read = [caches(p).memory.arrays[0] for p in (every, second)]
    extents = (7, 7, 64, 1, 1, 1024)
    rooms = [caches(every).memory.footprint(item, extents) for item in read]
    assert rooms[0] == pytest.approx(rooms[1], rel=0.05)
    assert all(blocks(schedule, 7) == 1 for p in (every, second) for schedule in space(p).designs())


def test_pages_do_not_meet_in_sets_of_a_cache_by_their_addresses() -> None:
    """4 KB of each 64 or 68: systems put pages anywhere, and the second cache holds them."""
    made = [in_steps(convolution(7, 7, 512, 1024, 1, 1), 1, (7, 7, n)) for n in (16384, 17408)]
    (_, spread), (_, apart) = ([m.memory.traffic(*level) for level in levels(m)] for m in map(caches, made))
    assert spread == pytest.approx(apart, rel=0.01)


def levels(model: CacheModel) -> list[tuple[int, int]]:
    """Return the bytes of the first two caches, and at which distance lines meet in a set."""
    return [(size, period) for size, _, period in model._levels[:2]]


def test_the_rest_of_tiles_costs_no_more_than_a_tile() -> None:
    whole, rest = (tiles(matmul(m, 64, 512), (4, 2, 1)) for m in (8, 7))
    assert rest <= 1.01 * whole


def test_totals_that_are_just_enough_wait_for_each_other() -> None:
    """Two operations per cycle, four cycles of latency: 8 totals are enough in books, 12 take less."""
    eight, twelve = (tiles(matmul(48, 96, 512), private) for private in ((4, 2, 1), (6, 2, 1)))
    assert eight > 1.15 * twelve


def test_one_value_more_than_registers_takes_much_longer() -> None:
    """14 totals need 17 of 16 registers, two vectors and a factor with them; 12 need 15."""
    twelve, fourteen = (tiles(matmul(84, 96, 512), private) for private in ((6, 2, 1), (7, 2, 1)))
    assert fourteen > 1.25 * twelve


@pytest.mark.parametrize("rows", [8, 14, 28])
def test_blocks_of_rows_are_even(rows: int) -> None:
    """Blocks that half of the second cache holds: no small one is left for one of two threads."""
    program = with_constants(convolution(rows, 56, 64, 128, 3, 3))
    found = [s for s in space(program).designs() if blocks(s, rows) > 1]
    assert found
    for schedule in found:
        size, step = schedule.group[0], schedule.private[0]
        last = rows - (blocks(schedule, rows) - 1) * size
        assert size - last < step * blocks(schedule, rows)


def blocks(schedule: Schedule, rows: int) -> int:
    return ceil(rows / schedule.group[0]) if schedule.group[0] else 1


def test_what_is_written_out_around_a_loop_has_loops_of_its_own() -> None:
    """Three rows of a window are one step inside the channels' loop, outside three loops over channels."""
    program = convolution(7, 7, 64, 512, 3, 1)
    found = space(program)
    inside = replace(
        found.plain, private=(7, 1, 1, 3, 1, 1), vector=2, width=8, private_order=(1, 2, 0, 5, 4, 3)
    )
    outside = replace(inside, private_order=(1, 2, 0, 3, 4, 5))
    sizes = [LoopSizes(found.facts(each), found.reads) for each in (inside, outside)]
    assert [each.points for each in sizes] == [21, 7]
    assert sizes[1].steps == 3 * sizes[0].steps
    image = found.reads.inputs[0]
    assert image is not None
    steps = (StepModel(each, AVX2.costs.instructions, 32) for each in sizes)
    assert [step.distinct(image) for step in steps] == [9, 7]


def test_rows_of_a_register_tile_share_what_they_read() -> None:
    """Four rows of a stencil of five points read six rows, and two more elements of each at its own place."""
    found = space(jacobi(64, 64))
    rows, row = (
        StepModel(LoopSizes(found.facts(s), found.reads), AVX2.costs.instructions, 32)
        for s in (replace(found.plain, private=(n, 5 - n), vector=1, width=8) for n in (4, 1))
    )
    assert [rows.shared(k) for k in range(5)] == [(6 + 2 * 4) / (5 * 4)] * 5
    assert [row.shared(k) for k in range(5)] == [1.0] * 5


def test_neighbours_of_one_thread_are_loaded_once() -> None:
    found = space(jacobi(64, 64))
    alone = replace(found.plain, private=(1, 4))
    model = StepModel(LoopSizes(found.facts(alone), found.reads), AVX2.costs.instructions, 32)
    assert model.shared(0) == (6 + 2 * 4) / (5 * 4)


def product_by_pages(rows: int) -> tuple[ScheduleSpace, Schedule]:
    """Return a product whose sum goes through ``rows`` rows in pages of their own, in tiles of 4 x 24."""
    found = space(matmul(512, 4096, rows))
    return found, replace(found.plain, private=(4, 3, 1), vector=1, width=8, private_order=(1, 0, 2))


def test_pages_that_are_not_known_are_looked_up() -> None:
    found, schedule = product_by_pages(8192)
    costs = AVX2.costs
    assert isinstance(costs.kernels, CpuCosts)
    walks = replace(costs.kernels, page_miss_in_cache=0.0, page_miss_in_memory=0.0)
    at_once, in_parts = (
        CacheModel(MemoryModel(LoopSizes(found.facts(s), found.reads), costs.memory), walks, AVX2.caches)
        for s in (schedule, replace(schedule, local=(0, 0, 1024)))
    )
    assert at_once.page_cycles > 1.5 * in_parts.page_cycles


def test_rows_in_other_pages_are_waited_for() -> None:
    found, schedule = product_by_pages(1024)
    costs = AVX2.costs
    assert isinstance(costs.kernels, CpuCosts)
    memory = MemoryModel(LoopSizes(found.facts(schedule), found.reads), costs.memory)
    together = CacheModel(memory, costs.kernels, (2**15, 2**30, 2**31))
    assert CacheModel(memory, costs.kernels, (2**15, 2**16, 2**31)).waits > together.waits == 0.0


def test_rows_of_a_copy_that_are_no_multiple_of_a_vector_are_loaded_in_two() -> None:
    found, schedule = product_by_pages(1024)
    copied = [
        replace(
            schedule,
            local=(0, 24, 1024),
            group=(0, 24, 0),
            inputs=(Caching(), Caching(Memory.LOCAL, padding=padding)),
        )
        for padding in (0, 1)
    ]
    loads = [StepModel(LoopSizes(found.facts(s), found.reads), AVX2.costs.instructions, 32) for s in copied]
    whole, padded = (step.load_cost(1, found.reads.inputs[1]) for step in loads)
    assert padded > whole


def test_more_rows_than_ways_push_each_other_out() -> None:
    """Sixteen rows of 16 KB at once take longer than eight, since all lie in a set of eight lines."""

    def seconds(rows: int, columns: int) -> float:
        found = space(row_maximum(4096, columns, ElementType.FLOAT32, 0.0))
        return found.predicted(replace(found.plain, private=(rows, 1), vector=1, width=8))

    assert seconds(16, 4096) > 1.08 * seconds(8, 4096)
    assert seconds(16, 4112) < 1.02 * seconds(8, 4112)
