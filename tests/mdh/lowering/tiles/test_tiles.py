"""md_homs under schedules as kernel trees: readable, and the same as the md_homs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from homs import (
    ZOO,
    at_most,
    best_record,
    device,
    dot,
    gemm,
    matmul,
    stencil,
)
from hypothesis import given
from hypothesis import strategies as st
from scheduled_trees import compare, copy, legal, tree, under

from md_homs import Case, md_homs
from polyloom.ir.host import HostProgram
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.tiles.pipeline import lower_scheduled
from polyloom.mdh.schedule.schedules import Caching, Schedule
from polyloom.mdh.schedule.tiling import has_tiles
from polyloom.mdh.tree.nodes import Array, For, Kind, Space
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tree.rewrite import loads_of, walk
from polyloom.mdh.tree.text import function_text, load_text
from polyloom.mdh.tree.verify import verify
from polyloom.polyhedra.loops.tree import (
    Number,
    names_in,
)
from random_tests import tried
from samples import first_of_each

FOLDER = Path(__file__).parent / "golden"


TRIANGLE = gemm(13, 18, 21, guard=at_most("k", "i"), written=at_most("j", "i"))
CASES: dict[str, tuple[HostProgram, Schedule]] = {
    "matmul": (
        program := matmul(17, 37, 24),
        under(
            program,
            group=(8, 0, 0),
            local=(0, 0, 8),
            private=(2, 2, 2),
            vector=1,
            width=8,
            inputs=(Caching(), copy(0, 1, panel=True)),
        ),
    ),
    "stencil": (
        program := stencil(13, 37, 3, 3),
        under(program, group=(4, 0, 0, 0), private=(2, 1, 3, 3), vector=1, width=8),
    ),
    "triangle": (TRIANGLE, under(TRIANGLE, private=(2, 1, 1), vector=1, width=4)),
    "triangle_in_points": (TRIANGLE, under(TRIANGLE, private=(1, 1, 4))),
    "dot": (program := dot(1001), under(program, group=(256,), private=(2,), vector=0, width=8)),
    "dot_in_points": (program := dot(1001), under(program, group=(256,), private=(4,))),
    "best_record": (program := best_record(9, 41), under(program, private=(2, 2))),
}


@pytest.mark.parametrize("name", CASES)
def test_text(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(FOLDER / f"{name}.tree", function_text(tree(*CASES[name])))


@pytest.mark.parametrize("name", CASES)
def test_the_same_as_the_md_hom(name: str) -> None:
    compare(*CASES[name], {})


def native() -> DeviceModel:
    """A device of one work-item in each group."""
    return replace(device().model, max_group_size=1)


def alone(schedule: Schedule) -> Schedule:
    """Return a schedule for one work-item in each group."""
    count = len(schedule.items)
    return replace(schedule, items=(1,) * count, strided=(False,) * count, streaming=False)


def wild(program: HostProgram, seed: int) -> Schedule | None:
    return legal(program, seed, native(), alone)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(("name", "seed"), first_of_each(product(ZOO, range(2)), lambda case: case[0]))
def test_wild_schedules(name: str, seed: int) -> None:
    program, parameters = ZOO[name]
    schedule = wild(program, seed)
    assert schedule is not None
    compare(program, schedule, parameters, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_many_wild_schedules(name: str) -> None:
    program, parameters = ZOO[name]
    for seed in range(2, 40):
        if (schedule := wild(program, seed)) is not None:
            compare(program, schedule, parameters, seed)


def check_md_hom(case: Case, triangle: bool, seed: int) -> None:
    hom = case.node
    if not has_tiles(hom):
        return
    lost = {name for name, o in zip(hom.iterators, hom.combine, strict=True) if o.combiner}
    if triangle and hom.guard is not None and names_in(hom.guard).isdisjoint(lost):
        hom = replace(hom, written=hom.guard)
    program = replace(case.program, body=(hom,))
    if (schedule := wild(program, seed)) is not None:
        compare(program, schedule, {}, seed)


@tried(25)
@given(md_homs(scans=False, extras=True), st.booleans(), st.integers(0, 2**32))
def test_random_md_homs(case: Case, triangle: bool, seed: int) -> None:
    check_md_hom(case, triangle, seed)


@pytest.mark.slow
@tried(500)
@given(md_homs(scans=False, extras=True), st.booleans(), st.integers(0, 2**32))
def test_many_random_md_homs(case: Case, triangle: bool, seed: int) -> None:
    check_md_hom(case, triangle, seed)


@pytest.mark.parametrize("name", CASES)
def test_the_verifier_proves_that_nothing_is_lost(name: str) -> None:
    for function in (tree(*CASES[name]), final(tree(*CASES[name]))):
        verdict = verify(function, asked(CASES[name][0]))
        assert not verdict.wrong and (not verdict.unknown or name == "best_record")


def test_registers_are_single_values_and_vectors() -> None:
    for program, schedule in CASES.values():
        function = final(tree(program, schedule))
        arrays = [s for s in walk(function.body) if isinstance(s, Array)]
        loops = [s for s in walk(function.body) if isinstance(s, For)]
        assert all(a.lanes == bool(a.shape) for a in arrays if a.space is Space.REGISTER)
        assert not any(a.space is Space.PRIVATE for a in arrays)
        assert not any(loop.kind is Kind.UNROLLED for loop in loops)


def test_vectors_lie_along_the_rows_of_a_triangle() -> None:
    function = tree(*CASES["triangle"])
    assert "if" not in function_text(function)
    assert any(isinstance(s, For) and s.kind is Kind.VECTOR for s in walk(function.body))


def test_what_is_read_where_results_are_written_is_there() -> None:
    """The columns of a result end where its triangle does: no vector of it is looked for inside."""
    wide = gemm(13, 18, 21, written=at_most("j", "i"))
    buffers = (replace(b, shape=(Number(13), Number(13))) if b.name == "C" else b for b in wide.buffers)
    program = replace(wide, buffers=tuple(buffers))
    function = tree(program, CASES["triangle"][1])
    loads = [load_text(a) for s in walk(function.body) for a in loads_of(s)]
    assert not [load for load in loads if "max" in load]
    assert not (verdict := verify(function, asked(program))).wrong and not verdict.unknown
    compare(program, CASES["triangle"][1], {})


@pytest.mark.parametrize(("least", "shared"), [(17 * 37 * 24, True), (17 * 37 * 24 + 1, False)])
def test_small_md_homs_are_done_by_one_thread(least: int, shared: bool) -> None:
    program, schedule = CASES["matmul"]
    lower = lower_scheduled(program, lambda hom, around: schedule, least=least)
    loops = [s for s in walk(program_tree(program, lower).body) if isinstance(s, For)]
    assert any(loop.kind is Kind.GROUP for loop in loops) is shared


def test_points_that_read_one_element_come_together() -> None:
    """Three neighbours in a row, three of the window: five elements, each read by points in a row."""
    program = stencil(3, 9, 1, 3)
    schedule = under(program, private=(1, 3, 1, 3), unrolled_order=(0, 1, 2, 3))

    def elements(schedule: Schedule) -> list[str]:
        loads = [a for s in walk(final(tree(program, schedule)).body) for a in loads_of(s)]
        return [load_text(a) for a in loads if a.array == "x"]

    def changes(elements: list[str]) -> int:
        return sum(a != b for a, b in itertools.pairwise(elements))

    compare(program, replace(schedule, follow=0), {})
    assert changes(elements(replace(schedule, follow=0))) == 4 < changes(elements(schedule))


def test_what_tiles_leave_over_of_an_open_length_goes_point_by_point() -> None:
    """Three rows go through two of `k` at a time, a row that is left over through one."""

    def unrolled(m: int | str) -> list[int]:
        program = matmul(m, 37, 24)
        schedule = under(program, private=(3, 1, 2))
        compare(program, schedule, {} if isinstance(m, int) else {m: 17})
        loops = (s for s in walk(tree(program, schedule).body) if isinstance(s, For))
        return [len([s for s in walk(loop.body) if isinstance(s, For) and s.iterator == "k_at"])
                for loop in loops if loop.iterator in ("k", "k_first")]  # fmt: skip

    assert unrolled(17) == [1, 1]
    assert unrolled("m") == [1, 0]
