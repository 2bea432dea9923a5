"""Schedules of the usual forms: legal, right, and better than what a few draws find."""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod

import pytest
from homs import at, buffers_of, convolution, dot, gemm, hom_of, jacobi, matmul, read, row_maximum, stencil
from scheduled_trees import compare

from c_host_programs import host_programs_of
from polyloom.ir.host import HostProgram, Index, View
from polyloom.ir.transform.joining.maps import joined_maps
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.types import ElementType
from polyloom.mdh.device.costs import CpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.native.device import choose
from polyloom.mdh.schedule.choice import default_schedule
from polyloom.mdh.schedule.cost.compute_cost import CycleModel, StepModel
from polyloom.mdh.schedule.cost.loop_sizes import LoopSizes, likely
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.schedules import Memory, Schedule
from polyloom.mdh.schedule.search_space import ScheduleSpace
from polyloom.mdh.schedule.signature import options_of
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.polyhedra.loops.tree import Name, Number, Operation

PROGRAMS = {
    "matmul": matmul(5, 37, 3),
    "gemm": gemm(4, 19, 3),
    "convolution": convolution(2, 5, 18, 2, 2, 2),
    "stencil": stencil(4, 21, 2, 3),
    "jacobi": jacobi(9, 37),
}


def native() -> DeviceModel:
    return choose("native", threads=2)


def with_constants(program: HostProgram) -> HostProgram:
    """Return a program whose last input is a constant, as weights are."""
    name = hom_of(program).inputs[-1].buffer
    return replace(program, buffers=tuple(replace(b, constant=b.name == name) for b in program.buffers))


def space(program: HostProgram) -> ScheduleSpace:
    return ScheduleSpace(hom=hom_of(program), buffers=buffers_of(program), device=native())


@pytest.mark.parametrize("name", PROGRAMS)
def test_designs_are_legal_and_right(name: str) -> None:
    program = with_constants(PROGRAMS[name])
    found = list(space(program).designs())
    assert found
    for schedule in found:
        assert not problems(TileFacts(hom_of(program), schedule), buffers_of(program), native())
    compare(program, found[0], {})
    compare(program, found[-1], {})


def test_rows_of_a_stencil_are_tiles_of_registers_and_threads_share_rows() -> None:
    found = list(space(jacobi(400, 400)).designs())
    assert {s.private[0] for s in found} == {8, 4, 2, 1}
    assert all(s.group[0] and not s.group[1] for s in found if s.vector == 1)


@pytest.mark.parametrize("n", [3961, 3967])
def test_sums_have_several_vectors_of_totals_where_no_number_of_them_divides_the_length(n: int) -> None:
    """17 x 233 vectors and a prime number of them: one vector of totals would wait for itself."""
    width = native().vector_bytes // ElementType.FLOAT32.size
    assert max(s.private[0] for s in space(dot(n * width)).designs() if s.vector == 0) == 8


def test_vectors_run_where_a_constant_is_copied_for_them() -> None:
    """Elements of a constant that lie apart are packed once; those of others are not copied."""
    program = PROGRAMS["convolution"]
    copied = [s for s in space(with_constants(program)).designs() if s.vector == 2]
    assert copied
    assert all([c.memory for c in s.inputs] == [Memory.GLOBAL, Memory.LOCAL] for s in copied)
    assert all(s.vector != 2 for s in space(program).designs())


def channels_before_windows(program: HostProgram) -> HostProgram:
    """Return a convolution whose loops are over channels first, then rows and columns of the window."""
    hom = hom_of(program)
    order = (0, 1, 2, 5, 3, 4)

    def moved(view: View) -> View:
        indices = [i for i in view.indices if isinstance(i, Index)]
        assert len(indices) == len(view.indices)
        moved = (replace(i, coefficients=tuple(i.coefficients[d] for d in order)) for i in indices)
        return replace(view, indices=tuple(moved))

    changed = replace(
        hom,
        iterators=tuple(hom.iterators[d] for d in order),
        extents=tuple(hom.extents[d] for d in order),
        combine=tuple(hom.combine[d] for d in order),
        inputs=tuple(map(moved, hom.inputs)),
        outputs=tuple(map(moved, hom.outputs)),
    )
    return replace(program, body=(changed,))


def test_a_reduction_ends_along_rows_in_memory() -> None:
    """Channels lie together: they are the innermost loop, in which packed weights lie in that order, too."""
    program = with_constants(channels_before_windows(convolution(7, 7, 16, 512, 3, 3)))
    found = list(space(program).designs())
    orders = {tuple(d for d in s.private_order if d > 2) for s in found}
    assert orders == {(3, 4, 5), (4, 5, 3)}
    for schedule in (s for s in found if s.vector == 2):
        axes = schedule.inputs[1].axes or (0, 1, 2, 3)
        channels_last = schedule.private_order[-1] == 3
        assert axes == ((1, 2, 3, 0) if channels_last else (3, 1, 2, 0))
    small = with_constants(channels_before_windows(convolution(2, 5, 18, 16, 2, 2)))
    compare(small, next(s for s in space(small).designs() if s.private_order[-1] == 3), {})
    short = with_constants(channels_before_windows(convolution(7, 7, 16, 3, 3, 3)))
    assert {s.private_order[-1] for s in space(short).designs()} == {5}


def test_points_in_the_same_cache_set_do_not_wait_for_the_next_channel() -> None:
    """Points of 512 channels are 2048 bytes apart: those of a window are in two sets of eight lines each."""
    program = with_constants(channels_before_windows(convolution(7, 7, 512, 512, 3, 3)))
    device = replace(native(), vector_bytes=32, caches=(2**15, 2**19, 2**25), ways=(8, 8, 16))
    forms = ScheduleSpace(hom=hom_of(program), buffers=buffers_of(program), device=device)
    best = {
        last: min(forms.predicted(s) for s in forms.designs() if s.private_order[-1] == last)
        for last in (3, 5)
    }
    assert 1.1 * best[3] < best[5]
    chosen = default_schedule(hom_of(program), buffers_of(program), device)
    assert forms.predicted(chosen) <= best[3]


def test_a_packed_copy_costs_nothing_in_a_run() -> None:
    plain, constant = PROGRAMS["matmul"], with_constants(PROGRAMS["matmul"])
    copied = next(s for s in space(constant).designs() if any(c.memory is Memory.LOCAL for c in s.inputs))
    assert space(constant).predicted(copied) < space(plain).predicted(copied)


def reversed_dot(n: int) -> HostProgram:
    """Return a dot product whose second vector is read from its end."""
    program = dot(n)
    hom = hom_of(program)
    turned = replace(hom.inputs[1], indices=(at(-1, plus=n - 1),))
    return replace(program, body=(replace(hom, inputs=(hom.inputs[0], turned)),))


def test_what_is_read_backwards_needs_no_copy() -> None:
    """A reversed vector is a load and a shuffle: there are designs for it, and the choice copies nothing."""
    program = reversed_dot(5000)
    found = list(space(program).designs())
    assert found and all(s.vector == 0 and s.width > 1 for s in found)
    chosen = default_schedule(hom_of(program), buffers_of(program), native())
    assert all(c.memory is Memory.GLOBAL for c in chosen.inputs)
    compare(reversed_dot(83), next(iter(space(reversed_dot(83)).designs())), {})


def test_constants_are_part_of_what_a_choice_is_kept_under() -> None:
    assert options_of(strict=True, constant=(0, 2)) == "strict constant0 constant2"
    assert options_of(strict=False) == ""


def test_open_sizes_have_vectors_where_c_compilers_make_none() -> None:
    """Sums of all points, and what is turned: of others the vectors of C compilers are as good."""
    chosen = default_schedule(hom_of(dot("N")), buffers_of(dot("N")), native())
    assert chosen.width > 1 and chosen in list(space(dot("N")).designs())
    assert list(space(matmul("N", "M", "K")).designs()) == []
    grid = jacobi(99, 99)
    hom = hom_of(grid)
    hom = replace(hom, inputs=hom.inputs[:1], terms=(read(0),), extents=(Name("n"), Name("m")))
    swapped = replace(hom.outputs[0], indices=tuple(reversed(hom.outputs[0].indices)))
    for outputs, some in ((hom.outputs, False), ((swapped,), True)):
        copy = replace(hom, outputs=outputs)
        assert (default_schedule(copy, buffers_of(grid), native()).width > 1) == some


def test_a_size_that_a_number_bounds_has_designs_of_that_number() -> None:
    """Of at most 32 rows 8 go together: 11 would leave 10 of them."""
    program = row_maximum(32, 1000, ElementType.FLOAT32, -inf)
    rows = Operation("min", (Number(32), Name("n")))
    hom = replace(hom_of(program), extents=(rows, Name("m")))
    device = replace(native(), vector_bytes=32)
    found = ScheduleSpace(hom=hom, buffers=buffers_of(program), device=device)
    assert next(iter(found.designs())).private[0] == 8


def test_the_choice_is_at_least_as_good_as_every_design() -> None:
    program = with_constants(convolution(28, 28, 64, 64, 3, 3))
    found = space(program)
    best: Schedule = default_schedule(hom_of(program), buffers_of(program), native())
    assert found.predicted(best) <= min(map(found.predicted, found.designs()))


def test_lines_that_meet_in_a_set_are_loaded_again() -> None:
    """Points 2048 bytes apart: 32 KB in 8 ways has room for 16 of them."""
    program = with_constants(convolution(7, 7, 64, 512, 3, 3))
    device = replace(native(), vector_bytes=32, caches=(2**15, 2**19, 2**25))
    few, many = (
        ScheduleSpace(hom=hom_of(program), buffers=buffers_of(program), device=replace(device, ways=ways))
        for ways in ((8, 8, 16), (12, 16, 16))
    )
    channels_outside = [
        replace(s, private_order=(*[d for d in s.private_order if d < 3], 5, 3, 4))
        for s in few.designs()
        if s.vector == 2
    ]
    schedules = [s for s in channels_outside if few.is_valid(s)]
    assert max(few.predicted(s) / many.predicted(s) for s in schedules) > 1.2


def test_the_values_of_a_tile_that_are_needed_longest_are_the_fewer_ones() -> None:
    """Of 3 points and 4 vectors the points stay in registers: the innermost loop goes through them."""
    program = with_constants(convolution(14, 14, 64, 64, 3, 3))
    device = replace(native(), vector_bytes=32)
    found = ScheduleSpace(hom=hom_of(program), buffers=buffers_of(program), device=device)
    tiles = [s for s in found.designs() if s.vector == 2 and s.private[2] == 4 and max(s.private[:2]) == 3]
    assert tiles
    assert all(s.private[s.unrolled_order[-1]] == 3 for s in tiles)


def test_narrow_registers_hold_twelve_totals_and_what_they_need() -> None:
    """With 16 registers 6 x 2 totals, 2 vectors and a factor are not spilled; with 17 values they are."""
    program = with_constants(convolution(12, 12, 64, 64, 1, 1))
    device = replace(native(), vector_bytes=32)
    found = ScheduleSpace(hom=hom_of(program), buffers=buffers_of(program), device=device)
    tile = next(s for s in found.designs() if s.vector == 2 and s.private[2] == 2 and max(s.private[:2]) == 6)
    step = StepModel(LoopSizes(found.facts(tile), found.reads), device.costs.instructions, 32)
    kernels = device.costs.kernels
    assert isinstance(kernels, CpuCosts)
    assert step.needed == 15
    assert CycleModel(step, kernels).spill_factor() == 1.0
    wide = replace(step, vector_bytes=64)
    assert wide.reserved > step.reserved


def test_vectors_along_a_sum_have_totals_of_their_own() -> None:
    """Of 32 rows all totals stay in 16 registers: rows times vectors of a step."""
    program = row_maximum(32, 1000, ElementType.FLOAT32, -inf)
    device = replace(native(), vector_bytes=32)
    found = ScheduleSpace(hom=hom_of(program), buffers=buffers_of(program), device=device)
    sums = [s for s in found.designs() if s.vector == 1]
    assert sums
    for schedule in (*sums, default_schedule(hom_of(program), buffers_of(program), device)):
        sizes = LoopSizes(found.facts(schedule), found.reads)
        assert sizes.accumulators == prod(schedule.private) <= 14


def test_several_sums_share_the_registers() -> None:
    """Five sums of eight vectors each were spilled in every step."""
    sums = "".join(f"s[{k}] += {term};" for k, term in enumerate(("x[i]", "y[i]", "x[i] * y[i]")))
    text = "void f(int n, float x[6400], float y[6400], float s[3]) {\n#pragma scop\n"
    text += f"for (int i = 0; i < 6400; i++) {{ {sums} }}\n#pragma endscop\n}}"
    (program,) = host_programs_of(text)
    program = joined_maps(specialise(program, {"n": 6400}))
    device = replace(native(), vector_bytes=32)
    hom = hom_of(program)
    assert len(hom.outputs) == 3
    found = ScheduleSpace(hom=hom, buffers=buffers_of(program), device=device)
    sums_in_vectors = [s for s in found.designs() if s.vector is not None]
    assert sums_in_vectors
    assert all(3 * prod(s.private) <= 16 for s in sums_in_vectors)


def test_sums_of_elements_that_lie_apart_have_totals_of_their_own() -> None:
    """Drawn schedules of four totals were taken: each sum waited for the one before."""
    program = dot(6400)
    hom = hom_of(program)
    apart = replace(hom, inputs=tuple(View(view.buffer, (Index.of((9,)),)) for view in hom.inputs))
    buffers = tuple(replace(b, shape=(Number(9 * 6400),)) if b.shape else b for b in program.buffers)
    program = replace(program, body=(apart,), buffers=buffers)
    assert {s.vector for s in space(program).designs()} == {None}
    assert default_schedule(apart, buffers_of(program), native()).private[0] >= 8


@pytest.mark.parametrize("points", [3, 15, 64])
def test_a_short_sum_all_alone_has_no_vectors(points: int) -> None:
    """A vector of what was just stored, element by element, is there late."""
    device = replace(native(), vector_bytes=64)
    program = dot(points, ElementType.FLOAT64)
    chosen = default_schedule(hom_of(program), buffers_of(program), device)
    assert (chosen.vector is None) == (points < 16)


def test_an_open_size_is_no_larger_than_a_number_that_bounds_it() -> None:
    number = Operation("min", (Number(32), Name("n")))
    assert likely(number) == 32
    assert likely(Operation("min", (Name("m"), number))) == 32
    assert likely(Name("n")) == likely(Operation("min", (Number(5000), Name("n"))))


def test_sums_that_turn_from_page_to_page_are_cut_and_copied() -> None:
    found = ScheduleSpace(hom=hom_of(BY_PAGES), buffers=buffers_of(BY_PAGES), device=native())
    schedules = list(found.designs())
    assert any(s.local[2] == 128 and s.inputs[1].memory is Memory.GLOBAL for s in schedules)
    assert any(s.local[2] == 256 and s.inputs[1].memory is Memory.LOCAL for s in schedules)
    assert all(s.inputs[0].memory is Memory.GLOBAL for s in schedules)


def test_sums_along_rows_are_not_cut() -> None:
    program = matmul(512, 16, 1024)
    assert all(not s.local[2] for s in space(program).designs())


BY_PAGES = matmul(512, 1024, 1024)
"""A product whose sum reads the second input from row to row, 4 KB apart."""
