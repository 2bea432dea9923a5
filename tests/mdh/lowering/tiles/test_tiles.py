"""md_homs under schedules as kernel trees: readable, and the same as the md_homs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from homs import (
    ZOO,
    at_most,
    best_record,
    buffers_of,
    device,
    dot,
    gemm,
    hom_of,
    made_up,
    matmul,
    random_schedule,
    stencil,
)
from hypothesis import given
from hypothesis import strategies as st

from md_homs import Case, md_homs
from polyloom.ir.evaluation.host_programs import evaluate_host
from polyloom.ir.host import HostProgram, Role
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.lower import distinct_iterators, has_tiles
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.sequential_nest import term_names
from polyloom.mdh.lowering.tiles.pipeline import lower_scheduled, scheduled
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule, plain_schedule
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.mdh.tree.evaluate import backwards, evaluate, in_order
from polyloom.mdh.tree.nodes import Array, For, Function, Kind, Space
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tree.rewrite import walk
from polyloom.mdh.tree.text import function_text
from polyloom.mdh.tree.verify import Asked, Verdict, verify
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Tree,
    names_in,
)
from random_tests import tried

FOLDER = Path(__file__).parent / "golden"


def tree(program: HostProgram, schedule: Schedule) -> Function:
    buffers = buffers_of(program)
    return program_tree(program, lambda hom: scheduled(distinct_iterators(hom, buffers), buffers, schedule))


def under(program: HostProgram, **changes: object) -> Schedule:
    hom = hom_of(program)
    return replace(plain_schedule(len(hom.extents), len(hom.inputs)), **changes)  # type: ignore[arg-type]


def copy(*axes: int, panel: bool = False) -> Caching:
    return Caching(Memory.LOCAL, axes, 0, panel)


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
    "dot": (program := dot(1001), under(program, group=(256,), private=(2,), vector=0, width=8)),
    "best_record": (program := best_record(9, 41), under(program, private=(2, 2))),
}


@pytest.mark.parametrize("name", CASES)
def test_text(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(FOLDER / f"{name}.tree", function_text(tree(*CASES[name])))


@pytest.mark.parametrize("name", CASES)
def test_the_same_as_the_md_hom(name: str) -> None:
    compare(*CASES[name], {})


def compare(program: HostProgram, schedule: Schedule, parameters: Mapping[str, int], seed: int = 0) -> None:
    """Compare with the evaluator of md_homs: as scheduled, and with registers, in other orders."""
    arrays = made_up(program, parameters, seed)
    inputs = {b.name: arrays[b.name] for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)}
    wanted = evaluate_host(program, parameters, inputs)
    function = tree(program, schedule)
    early = evaluate(function, arrays, parameters, order=in_order)
    late = evaluate(final(function), arrays, parameters, order=backwards, together=True)
    for name, value in wanted.items():
        text = f"{schedule.text()}\n{function_text(function)}"
        np.testing.assert_array_equal(early[name], value, err_msg=text)
        np.testing.assert_array_equal(late[name], value, err_msg=text)


def native() -> DeviceModel:
    """A device of one work-item in each group, whose vectors may lie along guarded dimensions."""
    return replace(device().model, max_group_size=1, follows_guards=True)


def wild(program: HostProgram, seed: int) -> Schedule | None:
    """Return a legal schedule that no cost model would choose."""
    hom, rng = hom_of(program), Random(seed)
    for _ in range(1000):
        schedule = replace(random_schedule(hom, rng), items=(1,) * len(hom.extents), streaming=False)
        schedule = replace(schedule, strided=(False,) * len(hom.extents))
        if not problems(TileFacts(hom, schedule), buffers_of(program), native()):
            return schedule
    return None


@pytest.mark.parametrize("name", ZOO)
def test_wild_schedules(name: str) -> None:
    program, parameters = ZOO[name]
    for seed in range(2):
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


def asked(program: HostProgram) -> Asked:
    """Return the instances of an md_hom's terms: where the guard holds, at least those that are stored."""
    hom = hom_of(program)
    here = tuple(map(Name, hom.iterators))
    terms: Tree = tuple(Instance(name, here) for name in term_names(hom))

    def loops(*conditions: IntExpression | None) -> Tree:
        code = terms
        for condition in conditions:
            code = code if condition is None else (Branch(condition, code, ()),)
        for name, extent in reversed(list(zip(hom.iterators, hom.extents, strict=True))):
            inside = Operation("<", (Name(name), extent))
            code = (Loop(iterator=name, start=Number(0), condition=inside, step=Number(1), body=code),)
        return code

    return Asked(least=loops(hom.guard, hom.written), most=loops(hom.guard))


@pytest.mark.parametrize("name", CASES)
def test_the_verifier_proves_that_nothing_is_lost(name: str) -> None:
    function = tree(*CASES[name])
    assert verify(function, asked(CASES[name][0])) == Verdict((), ())
    assert verify(final(function), asked(CASES[name][0])) == Verdict((), ())


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


@pytest.mark.parametrize(("least", "shared"), [(17 * 37 * 24, True), (17 * 37 * 24 + 1, False)])
def test_small_md_homs_are_done_by_one_thread(least: int, shared: bool) -> None:
    program, schedule = CASES["matmul"]
    lower = lower_scheduled(program, lambda hom: schedule, least)
    loops = [s for s in walk(program_tree(program, lower).body) if isinstance(s, For)]
    assert any(loop.kind is Kind.GROUP for loop in loops) is shared
